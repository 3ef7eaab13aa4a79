"""Reads lines such as "Mon 7:45" or "Tue 8:09:50" and prints each day and the total."""

import sys


def parse_duration(text):
    """Seconds in "hours:minutes" or "hours:minutes:seconds"."""
    hours, minutes, seconds = (text.split(":") + ["0"])[:3]
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def format_duration(seconds):
    """Hours and minutes, rounded to the nearest minute."""
    hours = seconds // 3600
    minutes = round(seconds % 3600 / 60)
    return f"{hours}:{minutes:02}"


def report(lines):
    """One line per day, then the total of all of them."""
    days = [line.split() for line in lines if line.strip()]
    total = sum(parse_duration(duration) for _, duration in days)
    rows = [f"{day}  {format_duration(parse_duration(duration))}" for day, duration in days]
    return "\n".join([*rows, f"Sum  {format_duration(total)}"])


if __name__ == "__main__":
    print(report(sys.stdin))
