"""Small chat templates in the manner of well-known model families."""

LLAMA3 = """{{ bos_token }}{% for message in messages %}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'
    + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}
"""

GEMMA = """{{ bos_token }}
{%- if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}
{% for message in messages %}
{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('roles must alternate') }}{% endif %}
{% set role = 'model' if message.role == 'assistant' else message.role %}
{{ '<start_of_turn>' + role + '\n' + message.content | trim + '<end_of_turn>\n' -}}
{% endfor %}
{% if add_generation_prompt %}{{ '<start_of_turn>model\n' -}}{% endif %}
"""

MISTRAL = """{% if messages[0].role == 'system' %}{% set system = messages[0].content %}
{% set turns = messages[1:] %}
{% else %}{% set turns = messages %}{% endif %}
{{- bos_token }}
{%- for turn in turns %}
{%- if (turn.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('roles must alternate') }}{%- endif %}
{%- if turn.role == 'user' %}
{%- if loop.last and system is defined %}{{- '[INST] ' ~ system ~ '\n\n' ~ turn.content ~ '[/INST]' }}
{%- else %}{{- '[INST] ' ~ turn.content ~ '[/INST]' }}{%- endif %}
{%- else %}{{- ' ' ~ turn.content ~ eos_token }}{%- endif %}
{%- endfor %}"""

QWEN3 = """{%- set ns = namespace(last=0) %}
{%- for message in messages %}
{%- if message.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}
{%- endfor %}
{%- for message in messages %}
{%- set content = message.content %}
{%- if message.role == 'assistant' and loop.index0 < ns.last and '</think>' in content %}
{%- set content = content.split('</think>')[-1].lstrip('\n') %}
{%- endif %}
{{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"""

DEEPSEEK = """{{ bos_token }}{% for message in messages %}
{%- if message.role == 'system' %}{{ message.content }}
{%- elif message.role == 'user' %}{{ '<|User|>' + message.content }}
{%- else %}{{ '<|Assistant|>' + message.content.split('</think>') | last + '<|end|>' }}{% endif %}
{%- endfor %}{% if add_generation_prompt %}{{ '<|Assistant|><think>\n' }}{% endif %}"""

PHI = """{% for message in messages %}
{{ '<|' + message.role + '|>\n' + message.content + '<|end|>\n' -}}
{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] in ['system', 'user'] %}
{{ '<|' + message['role'] + '|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{% generation %}{{ '<|assistant|>\n'  + message['content'] + eos_token }}{% endgeneration %}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

DROPS_SYSTEM = """{% for message in messages %}{% if message.role != 'system' %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{% endif %}"""

CHANNELS = """{% for message in messages %}
{%- if message.role == 'assistant' and '<|channel|>' in message.content %}
{{- raise_exception('channels belong into thinking') }}{% endif %}
{%- if message.role == 'assistant' %}
{{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}
{%- else %}{{ '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}{% endif %}
{%- endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"""

ALL = {
    "llama3": LLAMA3,
    "gemma": GEMMA,
    "mistral": MISTRAL,
    "qwen3": QWEN3,
    "deepseek": DEEPSEEK,
    "phi": PHI,
    "zephyr": ZEPHYR,
    "drops_system": DROPS_SYSTEM,
    "channels": CHANNELS,
    "fallback": None,
}
