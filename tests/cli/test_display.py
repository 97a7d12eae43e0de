"""What displays say about the time that is left."""

from headstart.cli import display


def test_the_time_left_counts_only_what_was_done_since_the_bar_began(monkeypatch, capsys):
    """The second epoch begins at step 100 of 200; ten steps in 20 s leave 90 of them."""
    now = [1000.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    with display.progress_bar("training", "steps", done_before=100) as show:
        show(101, 200)
        now[0] += 20
        show(110, 200)
    assert capsys.readouterr().err.strip() == ("training: 110 of 200 steps, 20 s, about 180 s left")


def test_without_anything_done_before_all_of_it_counts(monkeypatch, capsys):
    now = [1000.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    with display.progress_bar("reading", "rows") as show:
        now[0] += 30
        show(10, 40)
    assert "about 90 s left" in capsys.readouterr().err
