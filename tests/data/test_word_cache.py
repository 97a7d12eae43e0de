"""Looking words up gives the same ids as tokenizing the whole text."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headstart.data import tokenizers

# Characters around which GPT-2's pattern and ours could disagree.
TRICKY_CHARACTERS = "aZéßжҁ҂ñ家1²٣½'.,([-_ \n\t\r\x00\x1c\x85\xa0\u0301\u180e\u2028\u3000"
TRICKY = st.text(st.sampled_from(TRICKY_CHARACTERS))
WORDS = st.lists(
    st.sampled_from(["don't", "we'll", "'tis", "film", "12,5", "3rd", "é", "...", "(", " ", "\n"])
).map("".join)


@settings(max_examples=500)
@given(texts=st.lists(TRICKY | WORDS | st.text(), max_size=4))
@example(texts=["He said:'twas  ''tis"])
def test_cached_ids_are_those_of_the_whole_text(bpe, texts):
    assert bpe.encode(texts) == bpe._encode_whole(texts)


@given(text=TRICKY | st.text())
def test_the_parts_of_a_text_are_the_text(text):
    assert "".join(tokenizers._PART.findall(text)) == text


def test_a_full_cache_starts_anew_and_stays_right(bpe, monkeypatch):
    monkeypatch.setattr(tokenizers, "_MAX_CACHE_BYTES", 1000)
    texts = [f"word{i} film {i}" for i in range(200)]
    one_by_one = [bpe.encode([text])[0] for text in texts]
    assert one_by_one == bpe._encode_whole(texts)
    assert len(bpe._known) < 100
