"""Sites whose mutation changes nothing that any program can see, and why.

A site is named by its file, its original text with single spaces, and the reason. An entry that
names no site is an error, so that the list follows the RTL.
"""

from __future__ import annotations

from collections.abc import Sequence

from accelsim.errors import InputError
from accelsim.mutate.sites import Site

# (file, original text, why no program can tell the difference)
EQUIVALENT: tuple[tuple[str, str, str], ...] = (
    ("npu_load.sv", "idle_q && !cmd_valid_i", "its queue offers nothing before it is done"),
    ("npu_store.sv", "idle_q && !cmd_valid_i", "its queue offers nothing before it is done"),
    (
        "npu_dispatch.sv",
        "check_q - CountWidth'(1)",
        "slots are looked up from another one on; the two of a transfer keep their order",
    ),
    (
        "npu_dispatch.sv",
        "state_q == StCheck && check_q < LastCheck",
        "what is looked up outside the checks is not used",
    ),
    ("npu_dispatch.sv", "check_q < LastCheck", "what is looked up last is not used"),
    ("npu_dispatch.sv", "opcode < 8'd32", "opcode 32 is unknown anyway"),
    ("npu_dma_rows.sv", "active_q && next_i", "a walk that is over is not read"),
    ("npu_dma_bursts.sv", "active_q && ready_i", "a walk that is over is not read"),
    ("npu_dma_bursts.sv", "left_q < BurstBeats", "equal values: either is the smaller one"),
    ("npu_dma_bursts.sv", "to_page < beats", "equal values: either is the smaller one"),
    (
        "npu_requant.sv",
        "step_i[3].valid && step_i[3].param",
        "what has index 0 is a bias, or belongs to a maximum, which has none",
    ),
    ("npu_scale_round.sv", "value > Highest", "at the limit both give the limit"),
    ("npu_vector_reduce.sv", "element < value_q", "equal values: either is the lesser one"),
    ("npu_vector_reduce.sv", "element > value_q", "equal values: either is the greater one"),
    ("npu_requant.sv", "shifted < 33'(clamp_min_i)", "at the limit both give the limit"),
    ("npu_requant.sv", "shifted > 33'(clamp_max_i)", "at the limit both give the limit"),
    ("npu_fp_add.sv", "a_i[31] && b_i[31]", "the sign of a zero, which becomes the integer 0"),
    (
        "npu_fp_add.sv",
        "rounded[32] || rounded[31:23] == '0",
        "multipliers within 2^±100 keep sums normal",
    ),
    ("npu_fp_add.sv", "a_i[30:0] >= b_i[30:0]", "equal magnitudes: either is the larger one"),
    ("npu_fp_add.sv", "distance > 8'd27", "27 places leave the sticky bit alone as well"),
    (
        "npu_fp_mul.sv",
        "rounded[31:23] >= 9'd255",
        "with exponent 255 the value saturates like infinity",
    ),
    (
        "npu_fp_mul.sv",
        "a_i[30:23] == '1 || b_i[30:23] == '1",
        "multipliers within 2^±100 keep operands finite",
    ),
    (
        "npu_fp_add.sv",
        "rounded[31:23] >= 9'd255",
        "multipliers within 2^±100 keep sums finite",
    ),
    ("npu_requant.sv", "step_i[9].valid && keep_i", "computes what nobody reads"),
    ("npu_control.sv", "oldest_index_i[e] < oldest_index", "no two instructions have one index"),
    ("npu_control.sv", "running_index_i[e] < conflict_index", "no two have one index"),
    (
        "npu_vector_walk.sv",
        "!in_params && kw_last",
        "only steps that end a window reach the stage that looks at it",
    ),
    (
        "npu_vector_walk.sv",
        "!in_params && kw_last && kh_last",
        "only steps that end a window reach the stage that looks at it",
    ),
    ("npu_vector.sv", "walk_valid && walk_step.param", "reads parameters that nobody takes"),
    ("npu_acc_mem.sv", "v_rd_en_i && v_rd_bank_i == 1'(b)", "reads a row that nobody takes"),
    ("npu_rows_norm.sv", "shifted < 11'(job_i.clamp_min)", "at the limit both give the limit"),
    ("npu_rows_norm.sv", "shifted > 11'(job_i.clamp_max)", "at the limit both give the limit"),
    ("npu_rows_reduce.sv", "row_max_q > max_q", "equal values: either is the larger one"),
    (
        "npu_rows_reduce.sv",
        "$signed(act_i[l]) > row_max_d",
        "equal values: either is the larger one",
    ),
    ("npu_rows_reciprocal.sv", "busy_q && !update_q", "computes what nobody reads"),
    ("npu_rows.sv", "!is_norm && (is_sum[3] || is_out[3])", "reads words that nobody takes"),
    ("npu_rows.sv", "!is_norm && (is_sum[2] || is_out[2])", "computes what nobody reads"),
    (
        "npu_rows.sv",
        "!is_norm && is_out[4]",
        "a part of a sum goes first; other words nobody reads",
    ),
    ("npu_rows.sv", "!is_norm && is_out[5]", "computes what nobody reads"),
    ("npu_rows.sv", "is_softmax && is_sum[5]", "the sum was taken before more is added"),
)


def equivalents(
    sites: Sequence[Site], entries: Sequence[tuple[str, str, str]] = EQUIVALENT
) -> dict[int, str]:
    """Site number → reason. Raises InputError for an entry that names no site."""
    known = {(file, text): reason for file, text, reason in entries}
    found: dict[int, str] = {}
    for site in sites:
        reason = known.get((site.file, " ".join(site.original.split())))
        if reason is not None:
            found[site.number] = reason
    present = {(site.file, " ".join(site.original.split())) for site in sites}
    for file, text in known:
        if (file, text) not in present:
            raise InputError(f"equivalent mutant {file}: {text!r} is no site any more; remove it")
    return found
