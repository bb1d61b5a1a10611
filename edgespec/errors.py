"""One exception tree. Every message is a single line that says what to do."""


class EdgespecError(Exception):
    """Base of every error that edgespec raises on purpose; `exit_code` is for the shell."""

    exit_code = 1


class UsageError(EdgespecError):
    """The caller asked for something that cannot be meant."""

    exit_code = 2


class ModelFileError(EdgespecError):
    """The file is missing, damaged, or not a model."""


class UnsupportedModelError(EdgespecError):
    """The file is sound, but this backend does not know its architecture or quantisation."""


class ConversionError(EdgespecError):
    """A model file could not be written in another form."""


class DownloadError(EdgespecError):
    """A model could not be fetched."""


class TemplateError(EdgespecError):
    """The chat template of the model cannot render these messages."""


class PromptTooLongError(EdgespecError):
    """The prompt does not fit into the context."""


class DraftError(EdgespecError):
    """The draft model cannot serve this target."""


class BackendError(EdgespecError):
    """The native library refused or failed."""


class RollbackError(BackendError):
    """The cache cannot be cut to the asked length; its content is unknown until `truncate(0)`."""


class Cancelled(EdgespecError):
    """A forward pass was interrupted on request."""

    exit_code = 130
