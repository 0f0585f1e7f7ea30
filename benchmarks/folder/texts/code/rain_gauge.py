"""Rain gauges: convert the tips of a bucket into millimetres."""

MM_PER_TIP = 0.2  # of the tipping bucket
MAX_TIPS_PER_MINUTE = 45


def convert_tips(num_tips: int, minutes: float) -> float:
    """Return the rain in millimetres per hour; too many tips are an error."""
    if num_tips > MAX_TIPS_PER_MINUTE * minutes:
        raise ValueError(f"{num_tips} tips in {minutes} minutes: the bucket is broken")
    return num_tips * MM_PER_TIP * 60 / minutes
