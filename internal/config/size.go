package config

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"ken/internal/bytesize"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// size is a number of bytes: 65536, 64KiB, 512MB, 1GiB.
func size[T int | int64](least, most int64) kind[T] {
	return kind[T]{
		form: form{"type": []string{"integer", "string"}},
		parse: func(r *reading, at spot, v yamldoc.Value) (T, bool) {
			n, ok := bytesOf(v)
			if !ok {
				r.mistyped(at, v, "a size such as 64MiB, 512MB or 65536")
				return 0, false
			}
			if n < least || n > most {
				r.fault(at, "out-of-range", "write a size in that range", "%s is %s, not within %v to %v",
					at.key, plain(yamledit.Flow(v.Any)), yamledit.Flow(showSize(least)), yamledit.Flow(showSize(most)))
				return 0, false
			}
			return T(n), true
		},
		show:    func(n T) any { return showSize(int64(n)) },
		noWider: noMore[T],
	}
}

func bytesOf(v yamldoc.Value) (int64, bool) {
	if n, ok := v.Any.(int64); ok {
		return n, !notDecimal(v.Text)
	}
	s, ok := v.Any.(string)
	if !ok {
		return 0, false
	}
	return bytesize.Parse(s)
}

func showSize(n int64) any {
	if text, ok := bytesize.Format(n); ok {
		return text
	}
	return n
}

const noneWord = "none"

// orNone adds the word none, for no limit, to a kind of number. It is kept as
// the number none.
func (k kind[T]) orNone(none T) kind[T] {
	number := k
	k.form = k.or(noneWord)
	k.parse = func(r *reading, at spot, v yamldoc.Value) (T, bool) {
		if v.Any == noneWord {
			return none, true
		}
		before := len(r.problems)
		n, ok := number.parse(r, at, v)
		for i := before; i < len(r.problems); i++ {
			r.problems[i].Fix = cmp.Or(r.problems[i].Fix, "write one") + ", or none for no limit"
		}
		return n, ok
	}
	isNone := func(n T) bool { return any(n) == any(none) }
	k.show = func(n T) any {
		if isNone(n) {
			return noneWord
		}
		return number.show(n)
	}
	k.noWider = func(a, b T) bool { return isNone(b) || !isNone(a) && number.noWider(a, b) }
	return k
}

// orHalf adds the word half, for half of what the machine has, to a size that
// may be none. It is kept as zero.
func (k kind[T]) orHalf() kind[T] {
	const word = "half"
	var half T
	number := k
	k.form = k.or(word)
	isHalf := func(n T) bool { return any(n) == any(half) }
	k.parse = func(r *reading, at spot, v yamldoc.Value) (T, bool) {
		if v.Any == word {
			return half, true
		}
		before := len(r.problems)
		n, ok := number.parse(r, at, v)
		for i := before; i < len(r.problems); i++ {
			r.problems[i].Fix = cmp.Or(r.problems[i].Fix, "write one") + ", or " + word + " for half of the machine's"
		}
		return n, ok
	}
	k.show = func(n T) any {
		if isHalf(n) {
			return word
		}
		return number.show(n)
	}
	k.noWider = func(a, b T) bool {
		if isHalf(a) || isHalf(b) {
			// How much half is depends on the machine: a size is what a
			// project knows, and none is more than either.
			return isHalf(a) && number.show(b) == noneWord || isHalf(b) && number.show(a) != noneWord || isHalf(a) && isHalf(b)
		}
		return number.noWider(a, b)
	}
	return k
}

// noMoreOrEver compares durations of which zero is the longest.
func noMoreOrEver(a, b time.Duration) bool { return b == 0 || a != 0 && cmp.Compare(a, b) <= 0 }

// each has every item of a list checked.
func (k kind[T]) each(check func(string) (fix string, err error)) kind[T] {
	parse := k.parse
	k.parse = func(r *reading, at spot, v yamldoc.Value) (T, bool) {
		out, ok := parse(r, at, v)
		items, _ := v.Any.([]yamldoc.Value)
		for i, item := range items {
			s, isText := item.Any.(string)
			if !isText || s == "" || strings.ContainsFunc(s, unseen) {
				continue // said already
			}
			if fix, err := check(s); err != nil {
				where := spot{at.key + "[" + strconv.Itoa(i) + "]", item.Line}
				r.fault(where, "bad-value", fix, "%s %s %v", where.key, plain(s), err)
				ok = false
			}
		}
		return out, ok
	}
	return k
}

func checkVariable(s string) (fix string, err error) {
	for i, c := range s {
		if c != '_' && !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9') {
			return "write the name alone, such as LANG", errors.New("is not the name of a variable")
		}
	}
	return "", nil
}

// checkPassed rejects invalid names, and the variables that are the same
// for every command: naming one would change nothing.
func checkPassed(s string) (fix string, err error) {
	switch s {
	case "PATH":
		return "take it off the list; a command's programs come from the system's own folders", errors.New("is set by Ken for every command and never passed on")
	case "HOME":
		return "take it off the list; commands have a home of their own", errors.New("is set by Ken for every command and never passed on")
	case "TERM", "NO_COLOR", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "DEBIAN_FRONTEND":
		return "take it off the list; commands run without a terminal", errors.New("is set by Ken for every command and never passed on")
	}
	return checkVariable(s)
}

// folders is a list of directories, of which relative ones count from the file
// that says them. A project has no say in it.
func folders() kind[[]string] {
	k := texts("folders", nil, nil).each(func(s string) (string, error) {
		if strings.ContainsRune(s, os.PathListSeparator) {
			return "write each folder as an item of its own", errors.New("names several folders")
		}
		return "", nil
	})
	parse := k.parse
	k.parse = func(r *reading, at spot, v yamldoc.Value) ([]string, bool) {
		list, ok := parse(r, at, v)
		for i := range list {
			list[i] = r.absolute(list[i])
		}
		return list, ok
	}
	return k.fixed()
}
