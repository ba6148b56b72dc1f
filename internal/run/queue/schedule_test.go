package queue

import (
	"testing"
	"time"
)

// TestCron: the next times of a schedule, in local time.
func TestCron(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	old := time.Local
	time.Local = zone
	t.Cleanup(func() { time.Local = old })
	at := func(s string) time.Time {
		t.Helper()
		got, err := time.ParseInLocation("2006-01-02 15:04:05", s, zone)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, tt := range []struct{ schedule, now, want string }{
		{"cron * * * * *", "2026-11-17 10:00:00", "2026-11-17 10:01:00"},
		{"cron */15 * * * *", "2026-11-17 10:16:01", "2026-11-17 10:30:00"},
		{"cron 0 3 * * *", "2026-11-17 03:00:00", "2026-11-18 03:00:00"},
		{"cron 30 8-17/3 * * 1-5", "2026-11-20 17:31:00", "2026-11-23 08:30:00"},
		{"cron 0 9 * * mon,thu", "2026-11-17 10:00:00", "2026-11-19 09:00:00"},
		{"cron 0 0 1 jan *", "2026-11-17 10:00:00", "2027-01-01 00:00:00"},
		{"cron 0 0 29 2 *", "2026-11-17 10:00:00", "2028-02-29 00:00:00"},
		{"cron 0 12 13 * 5", "2026-11-10 10:00:00", "2026-11-13 12:00:00"}, // either day
		{"cron 0 12 14 * 5", "2026-11-13 12:00:00", "2026-11-14 12:00:00"},
		{"cron 0 0 * * 7", "2026-11-17 10:00:00", "2026-11-22 00:00:00"}, // Sunday
		{"cron @daily", "2026-11-17 10:00:00", "2026-11-18 00:00:00"},
		{"cron 30 2 * * *", "2026-03-28 12:00:00", "2026-03-30 02:30:00"}, // the clock skips 2:30 on the 29th
		{"cron 0 3 * * *", "2026-03-28 12:00:00", "2026-03-29 03:00:00"},
		{"every 90m", "2026-11-17 10:00:00", "2026-11-17 11:30:00"},
	} {
		plan, err := ParseSchedule(tt.schedule)
		if err != nil {
			t.Errorf("ParseSchedule(%q) = %v", tt.schedule, err)
			continue
		}
		now := at(tt.now)
		if got := plan.Next(now, now); !got.Equal(at(tt.want)) {
			t.Errorf("%q after %s = %v, want %s", tt.schedule, tt.now, got, tt.want)
		}
	}
	base := at("2026-11-17 10:00:00")
	plan, _ := ParseSchedule("every 1h")
	if got := plan.Next(base, base.Add(5*time.Hour+time.Minute)); !got.Equal(base.Add(6 * time.Hour)) {
		t.Errorf("every 1h, five hours late = %v, want on the hour", got)
	}
}

// TestScheduleRefused: each bad schedule says what is wrong.
func TestScheduleRefused(t *testing.T) {
	for _, bad := range []string{
		"", "hourly", "every", "every 10", "every -1h", "every 10ms", "cron", "cron * * * *", "cron 60 * * * *", "cron * 24 * * *",
		"cron * * 0 * *", "cron * * * 13 *", "cron * * * * 8", "cron 5-1 * * * *", "cron */0 * * * *", "cron a * * * *", "cron 0 0 30 feb *", "cron 1,,2 * * * *",
		"every 900000h", "cron 5/99999999999999999999 * * * *",
	} {
		if _, err := ParseSchedule(bad); err == nil {
			t.Errorf("ParseSchedule(%q) = nil, want an error", bad)
		}
	}
}

func FuzzSchedule(f *testing.F) {
	for _, s := range []string{"cron */15 0-5,7 1/2 * sun", "every 1h", "cron @weekly", "cron 0 0 29 2 *", "cron 5/9223372036854775807 * * * *", "every 87840h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := ParseSchedule(text)
		if err != nil {
			return
		}
		now := time.Date(2026, 11, 17, 10, 0, 0, 0, time.UTC)
		if next := plan.Next(now, now); !next.After(now) {
			t.Errorf("%q after %v is %v", text, now, next)
		}
	})
}
