"""What a hostile and a new user found, what happens now, and the test that holds it.

`python -m tests.findings` (or `make findings`) prints the tables; with `--write` they are put into
docs/reliability.md. `tests/test_findings.py` checks that every test named here exists.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- findings: python -m tests.findings --write -->", "<!-- end of findings -->"


class Finding(NamedTuple):
    """One row: its name, what was tried, what happens now, and `file::test`."""

    row: str
    tried: str
    now: str
    test: str


HOSTILE = [
    Finding(
        "1",
        "`--output` is the input",
        "refused",
        "tests/inference/test_predict.py::test_the_input_is_never_overwritten",
    ),
    Finding(
        "2",
        "a dataset called `😀.csv`",
        "resumed and evaluated like any other; a name that is not Unicode is refused first",
        "tests/training/test_recipe.py::test_a_dataset_with_an_emoji_for_a_name_can_be_resumed_and_evaluated",
    ),
    Finding(
        "3",
        "evaluate the training file under another spelling of its path",
        "rows that trained or chose are left out and counted",
        "tests/inference/test_evaluate.py::test_another_spelling_of_the_path_judges_no_row_that_was_trained_on",
    ),
    Finding(
        "4",
        'an unclosed `"` in two rows of a CSV file',
        "training: an error with row and line; `predict`: only those rows have no answer",
        "tests/text/test_quotes.py::test_reading_for_training_stops_at_the_row_that_swallows_others",
    ),
    Finding(
        "5",
        "labels `[neg]`, `[/]`",
        "printed as they are",
        "tests/cli/test_finetune_commands.py::test_labels_that_look_like_markup_are_shown_as_they_are",
    ),
    Finding(
        "6",
        "the dataset grows after training",
        "as 3",
        "tests/inference/test_evaluate.py::test_a_dataset_that_grew_judges_no_row_that_was_trained_on",
    ),
    Finding(
        "7",
        "two trainings into one folder",
        "the second is refused and told who holds the folder",
        "tests/test_lock.py::test_training_into_a_folder_in_use_is_refused",
    ),
    Finding(
        "8",
        "bytes swapped in a cached token store",
        "found when it is opened (a sample) or looked at (`doctor --cache`, every byte), and made again",
        "tests/text/test_store.py::test_flipped_bits_are_found_when_a_store_is_opened_and_it_is_made_again",
    ),
    Finding(
        "9",
        "the corpus is saved again while it is read",
        "an error, and no store",
        "tests/text/test_content_hash.py::test_no_store_is_made_of_a_corpus_that_changes_while_it_is_stored",
    ),
    Finding(
        "10",
        "a tokenizer of the same size from another run",
        "refused",
        "tests/test_stored.py::test_the_tokenizer_of_another_run_is_refused_although_it_is_as_large",
    ),
    Finding(
        "11",
        "NaN among the weights",
        "refused, with the names of the tensors",
        "tests/test_stored.py::test_weights_that_are_no_numbers_are_refused",
    ),
    Finding(
        "12",
        "`--out` inside the corpus folder",
        "refused",
        "tests/test_lock.py::test_a_run_inside_the_folder_that_it_reads_is_refused",
    ),
    Finding(
        "13",
        "a full disk",
        "one message, no `.part` files, the old state; at every single write, sync and rename",
        "tests/test_faults.py::test_a_disk_that_refuses_costs_one_message_and_no_bit",
    ),
    Finding(
        "14",
        "`HEADSTART_CACHE` on a full disk, or a file",
        "one message that names the variable",
        "tests/cli/test_boundary.py::test_a_problem_in_the_cache_names_the_variable_that_moves_it",
    ),
    Finding(
        "15",
        "`--out` a file, `--output` a folder, under a file, a name too long",
        "refused before the work",
        "tests/inference/test_predict.py::test_an_output_that_cannot_be_written_is_refused_before_the_work",
    ),
    Finding(
        "16",
        "a JSON Lines row nested 100,000 deep, with a number of 5,000 digits, or `{}` first",
        "costs that row",
        "tests/text/test_quotes.py::test_one_strange_row_of_json_lines_costs_only_itself",
    ),
    Finding(
        "17",
        "control characters in a label or text",
        "shown as escapes, not sent",
        "tests/cli/test_boundary.py::test_control_characters_are_shown_and_not_sent",
    ),
    Finding(
        "18",
        "`task.json` with other labels or of another task",
        "refused",
        "tests/test_stored.py::test_a_task_that_does_not_belong_to_the_weights_is_refused",
    ),
    Finding(
        "19",
        "a damaged `identity.json`, `metrics.jsonl`, state or `summary.json`",
        "one message with a fix",
        "tests/test_stored.py::test_a_run_with_a_damaged_file_is_not_resumed",
    ),
    Finding(
        "20",
        "`--threads 100000`, `0`, `-3`",
        "refused",
        "tests/test_settings.py::test_threads_that_no_machine_has_are_refused",
    ),
    Finding(
        "21",
        "`--vocab-size 99999999999`, `--batch-tokens 99999999999999`",
        "refused, with the reason",
        "tests/test_settings.py::test_a_bound_says_its_reason",
    ),
    Finding(
        "22",
        "`--steps 0`, `--width 0`, `--epochs 0`, `--jobs 0`",
        "refused",
        "tests/test_settings.py::test_zero_on_the_command_line_is_no_way_to_say_not_given",
    ),
    Finding(
        "23",
        "a terminal without UTF-8",
        "works; what it cannot show is an escape, and JSON stays JSON",
        "tests/cli/test_boundary.py::test_any_encoding_of_the_terminal_will_do",
    ),
    Finding(
        "24",
        "`~nosuch/a.csv`, a name of 300 characters, no permission",
        "one message",
        "tests/test_outside.py::test_an_error_from_outside_has_a_cause_a_place_and_a_fix",
    ),
    Finding(
        "25",
        "`--encoding rot13`",
        "refused, with names that work",
        "tests/text/test_quotes.py::test_a_codec_that_is_no_encoding_of_text_is_refused",
    ),
    Finding(
        "26",
        "`--learning-rate inf`, `--warmup 5`, `--save-seconds nan`",
        "refused",
        "tests/test_settings.py::test_a_value_without_sense_is_refused",
    ),
    Finding(
        "27",
        "a CSV file with CR line ends only",
        "read by training and by `predict`",
        "tests/text/test_quotes.py::test_a_file_of_carriage_returns_is_read_by_predict_as_by_training",
    ),
    Finding(
        "28",
        "a UTF-32 file",
        "the advice names UTF-32, and works",
        "tests/text/test_quotes.py::test_the_advice_for_another_encoding_leads_to_the_text",
    ),
    Finding(
        "29",
        "an endless expression or a multiplying normalizer in a `tokenizer.json`",
        "tried out in a process of its own, with limits, and refused",
        "tests/text/test_tokenizer.py::test_a_file_whose_steps_never_end_or_multiply_the_text_is_refused",
    ),
    Finding(
        "30",
        "cells that begin with `=`, `@`, `+`, `-` in exported CSV tables",
        "an apostrophe before them",
        "tests/inference/test_predict.py::test_no_cell_of_a_csv_is_a_formula",
    ),
    Finding(
        "31",
        "an error with `--json`",
        "one JSON document",
        "tests/cli/test_boundary.py::test_with_json_an_error_is_one_document_too",
    ),
    Finding(
        "32",
        "the mark between two texts inside one of them",
        "split where the pair is",
        "tests/tasks/test_pairs.py::test_a_text_that_holds_a_mark_is_split_where_the_pair_is",
    ),
    Finding(
        "33",
        "20,000 classes in `inspect`",
        "the largest 50 are shown, in time proportional to the classes",
        "tests/cli/test_inspect_command.py::test_thousands_of_classes_are_summed_up",
    ),
]
READING = [
    Finding(
        "GPU",
        "a resumed run's moments on the CPU",
        "they lie where their parameters do",
        "tests/training/test_optimizer.py::test_restored_moments_lie_where_their_parameters_do",
    ),
    Finding(
        "padding",
        "a padded row changes the attention of its batch",
        "segments only tell padding from text",
        "tests/objectives/test_batches.py::test_a_row_with_padding_changes_nothing_for_the_texts_beside_it",
    ),
    Finding(
        "summary",
        "numbers of the last step beside weights of the best",
        "numbers of the weights that are kept",
        "tests/training/test_listeners.py::test_the_numbers_of_a_pretraining_belong_to_the_weights_that_it_kept",
    ),
    Finding(
        "few files",
        "no held-out document by chance",
        "the message names `--documents`, which `compare` has, too",
        "tests/training/test_prepare.py::test_a_corpus_of_few_long_documents_names_the_way_out",
    ),
    Finding(
        "counting",
        "pairs counted in 8 bytes",
        "in 4",
        "tests/text/test_cooccurrence.py::test_pairs_are_sorted_in_four_bytes_where_four_hold_them",
    ),
    Finding(
        "explain",
        "a one-word text of a pair loses the mark",
        "every word is explained",
        "tests/tasks/test_pairs.py::test_every_word_of_a_pair_is_explained_also_the_only_one_of_a_text",
    ),
    Finding(
        "merge",
        '("a b", "c") and ("a", "b c") are one text',
        "two",
        "tests/tasks/test_pairs.py::test_words_on_the_other_side_make_another_pair",
    ),
    Finding(
        "Ctrl-C",
        "`GridSearchCV` swallows it",
        "it ends the search",
        "tests/test_classifier.py::test_a_search_ends_when_it_is_interrupted",
    ),
    Finding(
        "random",
        "training reseeds PyTorch's generator",
        "it is left as it was",
        "tests/training/test_listeners.py::test_a_training_leaves_the_global_random_state_as_it_was",
    ),
    Finding(
        "overlap",
        "`--drop-overlap` ignored for tagging and spans",
        "it drops",
        "tests/tasks/test_tagging.py::test_overlap_of_tagged_files_can_be_dropped",
    ),
    Finding(
        "conflicts",
        "of a text with two sets of labels the last wins",
        "all leave, and are counted",
        "tests/tasks/test_multi_label.py::test_a_text_with_two_combinations_of_labels_leaves_and_is_counted",
    ),
    Finding(
        "workers",
        "a worker's exception told as lack of memory",
        "told as what it is",
        "tests/studies/test_workers.py::test_a_bug_in_a_worker_is_told_as_what_it_is_with_its_place",
    ),
    Finding(
        "best",
        "`best/recipe.toml` lacks the budget",
        "it gives the same weights again",
        "tests/studies/test_rerun.py::test_the_recipe_of_the_best_run_gives_the_same_weights_and_it_has_a_card",
    ),
    Finding(
        "tag loss",
        "divided by words that were not read",
        "by those that were",
        "tests/tasks/test_tagging.py::test_the_loss_is_over_the_words_that_were_read",
    ),
    Finding(
        "IOBES",
        "falls back to accuracy",
        "entities, as seqeval's",
        "tests/evaluation/test_tagging.py::test_entities_with_marked_ends_are_seqevals",
    ),
    Finding(
        "parts",
        "micro-batches of next-sentence do not add up",
        "they do",
        "tests/objectives/test_batches.py::test_parts_of_a_step_add_up_also_where_one_has_no_hidden_token",
    ),
    Finding(
        "length",
        "shorter negatives give themselves away",
        "lengths are alike",
        "tests/objectives/test_batches.py::test_the_length_of_a_second_text_does_not_tell_whether_it_follows",
    ),
    Finding(
        "lock",
        "a study's lock taken twice, released once",
        "one lock for runs and studies",
        "tests/test_lock.py::test_a_folder_that_was_written_to_keeps_its_files_and_frees_its_lock",
    ),
    Finding(
        "cache",
        "stores are never removed",
        "after 90 days without use, or by `doctor --prune`",
        "tests/cli/test_doctor.py::test_a_store_that_nobody_opened_for_months_goes_when_another_is_made",
    ),
]
NEWCOMER = [
    Finding(
        "4",
        "the time left from the second epoch on",
        "counts the steps since the bar began",
        "tests/cli/test_display.py::test_the_time_left_counts_only_what_was_done_since_the_bar_began",
    ),
    Finding(
        "5",
        "a word that is a blank in a CoNLL file",
        "costs only itself",
        "tests/tasks/test_tagging.py::test_a_word_that_is_a_blank_costs_only_itself",
    ),
    Finding(
        "6",
        "an empty string for the estimator",
        "gets the frequencies of the classes",
        "tests/test_classifier.py::test_an_empty_text_gets_the_classes_frequencies_and_costs_no_other",
    ),
    Finding(
        "7",
        "the input's columns in `predict --output`",
        "all are kept",
        "tests/inference/test_predict.py::test_the_columns_of_the_input_are_kept_and_none_is_overwritten",
    ),
    Finding(
        "11",
        "only bases have a model card",
        "fine-tuned runs, `best/` and `.save()`, too",
        "tests/test_model_card.py::test_a_fine_tuned_run_has_one",
    ),
    Finding(
        "14",
        "hints that lead nowhere",
        "they name commands that work",
        "tests/cli/test_finetune_commands.py::test_hints_lead_to_commands_that_work",
    ),
    Finding(
        "16",
        "`perplexity` reads text by text",
        "many windows at once, with the same loss",
        "tests/inference/test_language_models.py::test_many_texts_at_once_have_the_loss_of_each_by_itself",
    ),
    Finding(
        "17",
        "`fit(X=…, y=…)`, `sample_weight`, a table of one column",
        "work",
        "tests/test_classifier.py::test_arguments_have_scikit_learns_names_and_a_table_of_one_column_is_one",
    ),
    Finding(
        "18",
        '"equal" ignores case without saying so; long labels are cut',
        "it says so; labels are folded",
        "tests/cli/test_inspect_command.py::test_equal_says_what_it_ignores_and_only_equal_texts_are_called_so",
    ),
]
TABLES = {
    "A hostile user's list": HOSTILE,
    "Found by reading the source": READING,
    "A new user's list": NEWCOMER,
}


def printed() -> str:
    """The tables in Markdown."""
    parts = []
    for title, findings in TABLES.items():
        lines = [f"### {title}", "", "| # | tried | now | test |", "|---|---|---|---|"]
        for one in findings:
            file, _, name = one.test.partition("::")
            words = name.removeprefix("test_").replace("_", " ")
            lines.append(f"| {one.row} | {one.tried} | {one.now} | `{file}`: {words} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/reliability.md")
    if not parser.parse_args().write:
        print(printed())
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{printed()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
