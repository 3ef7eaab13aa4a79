import unittest

from timesheet import format_duration, parse_duration, report


class TimesheetTest(unittest.TestCase):
    def test_reads_hours_and_minutes(self):
        self.assertEqual(parse_duration("7:45"), 27900)

    def test_reads_seconds_when_there_are_any(self):
        self.assertEqual(parse_duration("8:09:50"), 29390)

    def test_rounds_to_the_nearest_minute(self):
        self.assertEqual(format_duration(29390), "8:10")

    def test_rounds_up_to_a_full_hour(self):
        self.assertEqual(format_duration(parse_duration("7:59:45")), "8:00")

    def test_adds_up_the_week(self):
        self.assertEqual(report(["Mon 7:45", "Tue 8:10"]), "Mon  7:45\nTue  8:10\nSum  15:55")


if __name__ == "__main__":
    unittest.main()
