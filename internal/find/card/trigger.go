package card

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/capability"
)

// A filter is what must hold, besides words, for a card to be looked at.
type filter struct {
	sessionTypes, userTier, environment []string

	hours     []hours
	timed     bool   // the card asks for a time of day
	timeOfDay string // how it wrote it
}

// hours is a part of the day in minutes since midnight, the end excluded. It
// goes over midnight when end is before start.
type hours struct{ start, end int }

// dayPart knows the words for parts of the day; together they
// are the whole of it.
func dayPart(word string) (hours, bool) {
	switch word {
	case "morning":
		return hours{6 * 60, 12 * 60}, true
	case "afternoon":
		return hours{12 * 60, 18 * 60}, true
	case "evening":
		return hours{18 * 60, 22 * 60}, true
	case "night":
		return hours{22 * 60, 6 * 60}, true
	}
	return hours{}, false
}

func newFilter(t *capability.Triggers) (f filter, unreadable []string) {
	f = filter{
		sessionTypes: foldAll(t.SessionTypes),
		userTier:     foldAll(t.UserTier),
		environment:  foldAll(t.EnvironmentType),
		timed:        len(t.TimeOfDay) > 0,
		timeOfDay:    strings.Join(t.TimeOfDay, ", "),
	}
	for _, s := range t.TimeOfDay {
		if h, ok := parseHours(s); ok {
			f.hours = append(f.hours, h)
		} else {
			unreadable = append(unreadable, s)
		}
	}
	return f, unreadable
}

func foldAll(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, fold(strings.TrimSpace(s)))
	}
	return out
}

// parseHours reads "09:00-17:00", "9-17", "22:00–06:00" or a word.
func parseHours(s string) (hours, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	if h, ok := dayPart(s); ok {
		return h, true
	}
	from, to, ok := strings.Cut(strings.ReplaceAll(s, "–", "-"), "-")
	if !ok {
		return hours{}, false
	}
	start, ok1 := parseClock(from)
	end, ok2 := parseClock(to)
	// An empty range says nothing, and "the whole day" needs no trigger.
	return hours{start, end}, ok1 && ok2 && start != end && start < 24*60
}

func parseClock(s string) (minutes int, ok bool) {
	h, m, split := strings.Cut(strings.TrimSpace(s), ":")
	if !split {
		m = "00"
	}
	hour, err1 := strconv.ParseUint(h, 10, 8)
	minute, err2 := strconv.ParseUint(m, 10, 8)
	if err1 != nil || err2 != nil || len(h) > 2 || len(m) != 2 || minute > 59 || hour > 24 || hour == 24 && minute > 0 {
		return 0, false
	}
	return int(hour)*60 + int(minute), true
}

func (h hours) contain(minute int) bool {
	if h.start < h.end {
		return h.start <= minute && minute < h.end
	}
	return minute >= h.start || minute < h.end
}

// blocked says what keeps the card out, or nothing.
func (f *filter) blocked(scope *capability.Scope, now time.Time) string {
	session := scope.SessionType
	if session == "" {
		session = "main"
	}
	if !allows(f.sessionTypes, session) {
		return unlike("sessionTypes", f.sessionTypes, "session", session)
	}
	if !allows(f.userTier, scope.UserTier) {
		return unlike("userTier", f.userTier, "tier", scope.UserTier)
	}
	if !allows(f.environment, scope.Environment) {
		return unlike("environmentType", f.environment, "environment", scope.Environment)
	}
	if f.timed {
		return f.untimely(now)
	}
	return ""
}

func (f *filter) untimely(now time.Time) string {
	switch {
	case len(f.hours) == 0:
		return "timeOfDay " + strconv.Quote(f.timeOfDay) + " is unreadable; " + timeOfDayFix
	case now.IsZero():
		return "timeOfDay wants " + f.timeOfDay + ", the time is not known"
	}
	minute := now.Hour()*60 + now.Minute()
	if slices.ContainsFunc(f.hours, func(h hours) bool { return h.contain(minute) }) {
		return ""
	}
	return "timeOfDay wants " + f.timeOfDay + ", it is " + now.Format("15:04")
}

const timeOfDayFix = "write a range as 09:00-17:00, or morning, afternoon, evening or night"

// allows compares without case; a list of none does not restrict, and an
// unknown value matches no list.
func allows(list []string, value string) bool {
	if len(list) == 0 {
		return true
	}
	for _, want := range list {
		if want != "" && strings.EqualFold(want, value) {
			return true
		}
	}
	return false
}

func unlike(trigger string, want []string, what, have string) string {
	why := trigger + " wants " + strings.Join(want, ", ") + ", the " + what + " is "
	if have == "" {
		return why + "not known"
	}
	return why + have
}
