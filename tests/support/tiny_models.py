"""Tiny real models with random weights and tokenizers that read sums, saved as Hugging Face folders."""

from __future__ import annotations

import string
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

_NUMBERS = range(200)


def digit_tokenizer() -> PreTrainedTokenizerFast:
    """Every character is a token, as for models that split numbers into digits."""
    return character_tokenizer("0123456789+= \n")


def character_tokenizer(characters: str = "\n" + string.printable[:95]) -> PreTrainedTokenizerFast:
    """Every character is a token; by default the printable ones of ASCII, newline first."""
    vocabulary = {character: i for i, character in enumerate(["<end>", *characters])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<end>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>")


def teens_tokenizer() -> PreTrainedTokenizerFast:
    """Like `digit_tokenizer`, but 10 to 19 are one token each, so that prompts of a subtask differ in length."""
    vocabulary = [*"0123456789+= \n", *(str(n) for n in range(10, 20))]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(["<end>", *vocabulary])}, unk_token="<end>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("1\\d|[\\s\\S]"), "isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>")


def word_tokenizer() -> PreTrainedTokenizerFast:
    """Numbers are tokens with the space before them, so a prompt must end before that space; a BOS stands in front."""
    words = ["<end>", "<bos>", "\n", " +", " =", *(f"{n}" for n in _NUMBERS), *(f" {n}" for n in _NUMBERS)]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<end>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(" ?\\d+| ?[+=]|\\n"), "isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", bos_token="<bos>")


def spaced_tokenizer(*words: str) -> PreTrainedTokenizerFast:
    """Each of the words is a token, with or without the space before it."""
    vocabulary = ["<end>", "\n", *words, *(f" {word}" for word in words)]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="<end>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(" ?[^\\s]+|\\n"), "isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>")


def trained_tokenizer(texts: Iterable[str], *, n_vocab: int = 900) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer trained on texts: it reads anything, and of these texts most words are one token."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=n_vocab,
        special_tokens=["<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>")


def llama_folder(
    folder: Path, tokenizer: PreTrainedTokenizerFast | None, *, seed: int = 0, n_context: int = 128
) -> Path:
    """A Llama of 2 layers, 4 query and 2 key-value heads; returns its folder."""
    n_vocab = 16 if tokenizer is None else len(tokenizer)
    config = LlamaConfig(
        vocab_size=n_vocab,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=n_context,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3) if parameter.ndim > 1 else None
    model.save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    return folder


# A template like those of instruct models, with a BOS token of its own in front; a turn ends as a text does.
TEMPLATE = (
    "{{ '<bos>' }}{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}<end>"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


def chat_tokenizer() -> PreTrainedTokenizerFast:
    """Like `character_tokenizer`, with a BOS token that it puts in front itself, and a chat template that has one."""
    special = ["<end>", "<bos>"]
    vocabulary = {token: i for i, token in enumerate([*special, "\n", *string.printable[:95]])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<end>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    core.decoder = decoders.Fuse()
    core.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", bos_token="<bos>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def chain_folder(folder: Path, tokenizer: PreTrainedTokenizerFast, follows: dict[str, str]) -> Path:
    """A Llama that writes after each of these tokens the one given for it, whatever stands before; returns its folder.

    Its layers write nothing, and a token's embedding is the unembedding of the one that follows.
    """
    llama_folder(folder, tokenizer, n_context=512)
    model = LlamaForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        embedded, unembedded = model.model.embed_tokens.weight, model.lm_head.weight
        unembedded.zero_()
        for token, following in follows.items():
            one, other = (tokenizer.convert_tokens_to_ids(each) for each in (token, following))
            unembedded[other] += embedded[one] / embedded[one].norm()
    model.save_pretrained(folder)
    return folder
