"""What the specials are called in the vocabularies that people have."""

# Ours come first. BERT's [CLS] and [SEP] open and close a text; RoBERTa's </s> also separates.
SPECIAL_NAMES = {
    "pad": ("[PAD]", "<pad>", "<|pad|>", "<|padding|>"),
    "unknown": ("[UNK]", "<unk>", "<|unk|>"),
    "begin": ("[BOS]", "<s>", "<bos>", "<|begin_of_text|>", "[CLS]"),
    "end": ("[EOS]", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>", "[SEP]"),
    "mask": ("[MASK]", "<mask>", "<|mask|>"),
    "separator": ("[SEP]", "<sep>", "</s>"),
}
