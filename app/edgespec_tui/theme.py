"""Three looks: dark, light, and the terminal's own colours."""

from __future__ import annotations

from textual.theme import BUILTIN_THEMES, Theme

NAMES = ("dark", "light", "plain")

_DARK = Theme(
    name="dark",
    primary="#8ab4f8",
    secondary="#9aa5b8",
    accent="#c4b5fd",
    success="#8fd3a6",
    warning="#e9c46a",
    error="#f28b82",
    foreground="#d9dce3",
    background="#15171c",
    surface="#1d2027",
    panel="#252932",
    dark=True,
    variables={
        "border": "#8ab4f8",
        "border-blurred": "#343a46",
        "footer-background": "#15171c",
        "footer-key-foreground": "#8ab4f8",
        "input-selection-background": "#8ab4f8 30%",
        "block-cursor-foreground": "#15171c",
        "block-cursor-background": "#8ab4f8",
        "block-cursor-text-style": "none",
        "scrollbar": "#343a46",
        "scrollbar-background": "#15171c",
        "dim": "#8b94a5",
        "source-draft": "#7cc4ff",
        "source-suffix": "#8fd3a6",
        "source-ngram": "#e9c46a",
        "source-memory": "#c9a6ff",
        "source-recycling": "#f2a07b",
        "source-lookahead": "#ff9ecb",
        "source-jacobi": "#b5c76b",
    },
)
_LIGHT = Theme(
    name="light",
    primary="#2459b3",
    secondary="#5d6675",
    accent="#6d4bc4",
    success="#1f7a45",
    warning="#8a5a00",
    error="#b3261e",
    foreground="#24272e",
    background="#fbfbf9",
    surface="#f1f1ed",
    panel="#e6e6e1",
    dark=False,
    variables={
        "border": "#2459b3",
        "border-blurred": "#c9c9c3",
        "footer-background": "#fbfbf9",
        "footer-key-foreground": "#2459b3",
        "input-selection-background": "#2459b3 25%",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-background": "#2459b3",
        "block-cursor-text-style": "none",
        "scrollbar": "#c9c9c3",
        "scrollbar-background": "#fbfbf9",
        "dim": "#6a7180",
        "source-draft": "#0a63b0",
        "source-suffix": "#1f7a45",
        "source-ngram": "#8a5a00",
        "source-memory": "#6a3fb0",
        "source-recycling": "#a0441b",
        "source-lookahead": "#a3266b",
        "source-jacobi": "#5b6b12",
    },
)


def themes() -> list[Theme]:
    """All three."""
    ansi = BUILTIN_THEMES["ansi-dark"]
    plain = Theme(
        name="plain",
        primary="ansi_blue",
        secondary="ansi_cyan",
        accent="ansi_magenta",
        success="ansi_green",
        warning="ansi_yellow",
        error="ansi_red",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        dark=True,
        ansi=True,
        variables=ansi.variables
        | {
            "border-blurred": "ansi_bright_black",
            "dim": "ansi_bright_black",
            "source-draft": "ansi_blue",
            "source-suffix": "ansi_green",
            "source-ngram": "ansi_yellow",
            "source-memory": "ansi_magenta",
            "source-recycling": "ansi_cyan",
            "source-lookahead": "ansi_bright_magenta",
            "source-jacobi": "ansi_bright_yellow",
        },
    )
    return [_DARK, _LIGHT, plain]
