package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/run/executor"
)

const searchSchema = `{"type":"object","properties":{` +
	`"regex":{"type":"string","description":"RE2 expression, matched within single lines"},` +
	`"path":{"type":"string","description":"Folder or file, relative to the workspace; the workspace itself when left out"},` +
	`"file_pattern":{"type":"string","description":"Only files whose name matches, as in *.go or src/**/*.ts"},` +
	`"ignoreCase":{"type":"boolean"},` +
	`"limit":{"type":"integer","minimum":1,"description":"Most lines"},` +
	`"after":{"type":"string","description":"Go on after this place: next of an earlier result"}},` +
	`"required":["regex"],"additionalProperties":false}`

type searchInput struct {
	Regex       string `json:"regex"`
	Path        string `json:"path"`
	FilePattern string `json:"file_pattern"`
	IgnoreCase  bool   `json:"ignoreCase"`
	Limit       *int   `json:"limit"`
	After       string `json:"after"`
}

// A finding is what is told about a search.
type finding struct {
	Path    string   `json:"path"`
	Matches int      `json:"matches"`
	Files   int      `json:"files"` // looked into
	Next    string   `json:"next,omitempty"`
	Ignored int      `json:"ignored,omitempty"` // hidden by .kenignore
	Own     int      `json:"own,omitempty"`     // Ken's own, passed over
	Secret  int      `json:"secret,omitempty"`  // passed over by their name
	Binary  int      `json:"binary,omitempty"`
	Large   int      `json:"large,omitempty"`
	Special int      `json:"special,omitempty"` // links, hard links, pipes and the like
	Notes   []string `json:"notes,omitempty"`
}

const (
	mostMatches  = 500
	longestRegex = 1000
	lineShown    = 300
)

func (e *Executor) searchFacts(call capability.Call) ([]executor.Path, bool, error) {
	s, err := e.searchInput(call)
	if err != nil {
		return nil, false, err
	}
	return []executor.Path{{Name: s.place.shown}}, false, nil
}

// A search is one on its way.
type search struct {
	ctx       context.Context
	place     place
	re        *regexp.Regexp
	names     *Ignore // nil: every file
	secret    func(rel string) bool
	most      int
	afterFile string
	afterLine int

	about finding
	text  strings.Builder
	chars int
	last  string
}

func (e *Executor) searchInput(call capability.Call) (*search, error) {
	in, err := executor.Decode[searchInput](call)
	if err != nil {
		return nil, err
	}
	if in.Regex == "" || len(in.Regex) > longestRegex {
		return nil, executor.BadArguments(call, fmt.Errorf("regex is empty or has more than %d bytes", longestRegex), "")
	}
	if in.Limit != nil && *in.Limit < 1 {
		return nil, executor.BadArguments(call, errors.New("limit must be at least 1"), "")
	}
	expr := in.Regex
	if in.IgnoreCase {
		expr = "(?i)" + expr
	}
	s := &search{most: mostMatches}
	if s.re, err = regexp.Compile(expr); err != nil {
		return nil, executor.BadArguments(call, errors.New("regex is not a valid RE2 expression"), `check its brackets, or put \ before characters that are meant as such`)
	}
	if in.Limit != nil {
		s.most = min(s.most, *in.Limit)
	}
	if in.FilePattern != "" {
		if s.names, err = ParseIgnore(in.FilePattern); err != nil || len(s.names.rules) != 1 || s.names.rules[0].keep {
			return nil, executor.BadArguments(call, errors.New("invalid file_pattern"), "write it as *.go")
		}
	}
	if in.After != "" {
		i := strings.LastIndexByte(in.After, ':')
		if i < 0 {
			return nil, executor.BadArguments(call, errors.New("invalid value of after"), "use next from an earlier result")
		}
		if s.afterLine, err = strconv.Atoi(in.After[i+1:]); err != nil {
			return nil, executor.BadArguments(call, errors.New("invalid value of after"), "use next from an earlier result")
		}
		s.afterFile = in.After[:i]
	}
	s.place, err = e.locate("search", orDot(in.Path), false)
	if err == nil {
		err = s.place.admit("search", false)
	}
	s.about.Path, s.secret = s.place.shown, e.secretFiles(s.place.scope)
	return s, err
}

// secretFiles returns a function that reports whether a file of a scope is not
// searched: it holds secrets by the rules in force, or is git's own.
func (e *Executor) secretFiles(in *scope) func(rel string) bool {
	ruled := func(string) bool { return false }
	if e.cfg.Guards != nil {
		ruled = e.cfg.Guards().Secret
	}
	return func(rel string) bool {
		git := slices.ContainsFunc(strings.Split(path.Dir(rel), "/"), func(dir string) bool { return strings.EqualFold(dir, ".git") })
		return git || ruled(in.shown(rel))
	}
}

func orDot(name string) string {
	if name == "" {
		return "."
	}
	return name
}

func (e *Executor) search(ctx context.Context, call capability.Call) (capability.Result, error) {
	s, err := e.searchInput(call)
	if err != nil {
		return capability.Result{}, err
	}
	s.ctx = ctx
	w := &walk{ctx: ctx, scope: s.place.scope, recursive: true, marks: e.marks()}
	err = e.searchIn(s, w)
	if err != nil && !errors.Is(err, errEnough) {
		return trouble("search", s.place, err)
	}
	s.about.Ignored, s.about.Own, s.about.Notes = w.ignored, w.own, w.notes
	return answer(s.about, s.text.String(), s.about.Next != "" || w.cut), nil
}

func (e *Executor) searchIn(s *search, w *walk) error {
	if s.place.rel != "." {
		dir, base, in, err := e.parent(s.place, false)
		if err != nil {
			return err
		}
		defer dir.Close()
		info, err := dir.Lstat(base)
		if err != nil {
			return err
		}
		if e.stands(s.place, in, info) == closed {
			return isOwn("search", s.place)
		}
		if !info.IsDir() { // one file, named by itself
			return e.searchFile(s, dir, s.place.rel, fs.FileInfoToDirEntry(info), true)
		}
		if err := s.place.admit("search", true); err != nil {
			return err
		}
	}
	return w.dir(e, s.place, func(dir *os.Root, rel string, d fs.DirEntry) error {
		if d.IsDir() {
			return nil
		}
		return e.searchFile(s, dir, rel, d, false)
	})
}

// searchFile looks into one file. One that the call itself names is policy's to
// judge; others that hold secrets by their name are passed over.
func (e *Executor) searchFile(s *search, dir *os.Root, rel string, d fs.DirEntry, named bool) error {
	if s.afterFile != "" && order(rel, s.afterFile) < 0 {
		return nil
	}
	if s.names != nil {
		if _, ok := s.names.Match(rel, false); !ok {
			return nil
		}
	}
	if !named && s.secret(rel) {
		s.about.Secret++
		return nil
	}
	if !d.Type().IsRegular() {
		s.about.Special++
		return nil
	}
	f, info, err := openRegular(dir, path.Base(rel), e.cfg.HardLinks)
	if err != nil {
		s.about.Special++
		return nil
	}
	defer f.Close()
	if info.Size() > e.cfg.MaxFile {
		s.about.Large++
		return nil
	}
	data, err := readAll(f, e.cfg.MaxFile)
	if err != nil {
		s.about.Large++
		return nil
	}
	if binary(data[:min(len(data), 8<<10)]) != "" {
		s.about.Binary++
		return nil
	}
	s.about.Files++
	return s.lines(e.cfg.MaxChars, rel, data)
}

// piece is how many bytes are searched at once. A pattern can take a microsecond
// for each, and nothing stops it before their end.
const piece = 16 << 10

// matches reports whether the pattern is in a line or some lines. It ends with
// the call.
func (s *search) matches(text []byte) (bool, error) {
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	if len(text) <= piece {
		return s.re.Match(text), nil
	}
	r := &runes{ctx: s.ctx, in: bytes.NewReader(text)}
	found := s.re.MatchReader(r)
	return found, r.err
}

// runes reads a long text for the regexp engine, and ends it with the call.
type runes struct {
	ctx context.Context
	in  *bytes.Reader
	n   int
	err error
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; r.n%512 == 0 && r.ctx.Err() != nil {
		r.err = r.ctx.Err()
		return 0, 0, io.EOF
	}
	return r.in.ReadRune()
}

// none reports whether no line of a file matches, as far as that can be told
// faster than line by line.
func (s *search) none(data []byte) (bool, error) {
	if expr := s.re.String(); strings.ContainsAny(expr, "^$") || strings.Contains(expr, `\A`) || strings.Contains(expr, `\z`) {
		return false, nil
	}
	for len(data) > 0 {
		end := len(data)
		if end > piece {
			if end = bytes.LastIndexByte(data[:piece], '\n') + 1; end == 0 { // one long line
				if end = bytes.IndexByte(data, '\n') + 1; end == 0 {
					end = len(data)
				}
			}
		}
		if found, err := s.matches(data[:end]); found || err != nil {
			return false, err
		}
		data = data[end:]
	}
	return true, nil
}

// lines finds the matching lines of a file.
func (s *search) lines(mostChars int, rel string, data []byte) error {
	if none, err := s.none(data); none || err != nil {
		return err // none is the usual case
	}
	data = bytes.TrimSuffix(data, []byte("\n")) // what follows the last line break is no line
	n := 0
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		n++
		if rel == s.afterFile && n <= s.afterLine || len(data) == 0 {
			continue
		}
		found, err := s.matches(bytes.TrimSuffix(line, []byte("\r")))
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		shown := executor.Clip(strings.ToValidUTF8(string(bytes.TrimSuffix(line, []byte("\r"))), "\uFFFD"), lineShown)
		shown = fmt.Sprintf("%s:%d: %s\n", showName(s.place.scope.shown(rel)), n, strings.ReplaceAll(shown, "\n", " "))
		chars := utf8.RuneCountInString(shown)
		if s.about.Matches == s.most || s.about.Matches > 0 && s.chars+chars > mostChars {
			s.about.Next = s.last
			return errEnough
		}
		s.about.Matches++
		s.chars += chars
		s.last = rel + ":" + strconv.Itoa(n)
		s.text.WriteString(shown)
	}
	return nil
}
