package queue

import (
	"errors"
	"fmt"
	"time"
)

// When sets when a job is to run, as the flags --at, --every and --cron say it.
func (j *Job) When(at, every, cron string, now time.Time) error {
	if every != "" && cron != "" {
		return errors.New("--every and --cron exclude each other; give one")
	}
	if cron != "" && at != "" {
		return errors.New("--at and --cron exclude each other; the fields of --cron say when")
	}
	switch {
	case every != "":
		j.Schedule = "every " + every
	case cron != "":
		j.Schedule = "cron " + cron
	}
	if j.Schedule != "" {
		if _, err := ParseSchedule(j.Schedule); err != nil {
			return err
		}
	}
	if at == "" {
		return nil
	}
	t, err := moment(at, now)
	j.At = t
	return err
}

// moment reads a time that is to come.
func moment(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			if !t.After(now) {
				return t, fmt.Errorf("--at is %q, which is over; give a time to come", text)
			}
			return t, nil
		}
	}
	if t, err := time.ParseInLocation("15:04", text, time.Local); err == nil {
		n := now.Local()
		t = time.Date(n.Year(), n.Month(), n.Day(), t.Hour(), t.Minute(), 0, 0, time.Local)
		if !t.After(now) {
			t = t.AddDate(0, 0, 1)
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("--at is %q; write a time, as in 22:30 or 2026-01-31T12:00, or a duration, as in 2h", text)
}
