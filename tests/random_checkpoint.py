"""Writes a small Llama of random weights with a tokenizer and a chat template into a folder.

python tests/random_checkpoint.py FOLDER     with any Python that has torch and transformers
"""

import sys
from pathlib import Path

import tokenizers
import torch
import transformers

SPECIAL = ["<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONTEXT = 8192


def save(folder):
    alphabet = tokenizers.pre_tokenizers.ByteLevel
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = alphabet(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=SPECIAL,
        initial_alphabet=alphabet.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator([Path(__file__).read_text()] * 5, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=SPECIAL[0], additional_special_tokens=SPECIAL[1:]
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(tokenizer),
            max_position_embeddings=CONTEXT,
            eos_token_id=0,
            bos_token_id=None,
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=2,
            num_attention_heads=4,
        )
    ).save_pretrained(folder)


if __name__ == "__main__":
    save(sys.argv[1])
