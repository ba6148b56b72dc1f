package audit

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"ken/internal/coldsort"
)

// A State is what [Verify] found about a chain. The first four are in order.
type State string

const (
	Whole      State = "ok"      // closed, and everything that was signed is there
	OpenAlive  State = "open"    // its process is writing; what was signed is there
	OpenDied   State = "died"    // its process ended without closing; what was signed is there
	RetiredNow State = "retired" // removed on purpose, as a later chain records

	Broken       State = "broken"        // a record was changed
	Cut          State = "cut"           // fewer records than were signed
	MissingFile  State = "missing file"  // a whole file is gone
	BadSignature State = "bad signature" // a checkpoint is not what the key signed
	Unsigned     State = "unsigned"      // records without any checkpoint
	Unreadable   State = "unreadable"    // the files could not be read
)

// OK says that s is no reason for alarm.
func (s State) OK() bool {
	return s == Whole || s == OpenAlive || s == OpenDied || s == RetiredNow
}

// A ChainReport is what [Verify] found about one chain.
type ChainReport struct {
	Chain   string `json:"chain"`
	State   State  `json:"state"`
	Records int64  `json:"records"` // whole and in order, from the beginning
	Signed  int64  `json:"signed"`  // by the newest head; an acknowledged record is among them

	// Unfinished is the length of a last line without its end: a record that
	// was being written when the process ended, and never acknowledged.
	Unfinished int64 `json:"unfinished,omitempty"`

	// Where and what, if not OK: the first record that is wrong, its file and
	// the byte at which it begins (or should).
	Seq     int64  `json:"seq"`
	File    string `json:"file,omitempty"`
	Offset  int64  `json:"offset"`
	Problem string `json:"problem,omitempty"`

	Notes []string `json:"notes,omitempty"` // no alarm, but worth knowing
}

func (r ChainReport) String() string {
	s := fmt.Sprintf("%s: %s, %d records, %d signed", r.Chain, r.State, r.Records, r.Signed)
	if !r.State.OK() {
		s += fmt.Sprintf("; record %d, %s byte %d: %s", r.Seq, r.File, r.Offset, r.Problem)
	}
	for _, n := range r.Notes {
		s += "; " + n
	}
	return s
}

// A Report is what [Verify] found.
type Report struct {
	Chains []ChainReport `json:"chains"`
	Strays []string      `json:"strays,omitempty"` // files in the directory that are not ours
}

// OK says that every chain is in order.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Chains, func(c ChainReport) bool { return !c.State.OK() })
}

// Verify reads every chain in dir and compares it with its signed heads in
// checkpointDir, with what other chains remember of it, and with heads that
// were kept elsewhere ([Log.Head]). publicKey is [Key.Public]; several, one a
// line, where the key was replaced. It streams, takes no lock and may run
// while processes write. The error is about reading the directories; what is
// wrong with a chain is in the report.
func Verify(dir, checkpointDir, publicKey string, elsewhere ...[]byte) (Report, error) {
	known, err := verifiers(publicKey)
	if err != nil {
		return Report{}, err
	}
	// Heads first: a chain that is opened meanwhile makes its head before its
	// segment, and is then only missing from a list that does not matter.
	names, err := listHeads(checkpointDir)
	if err != nil {
		return Report{}, err
	}
	chains, strays, err := listChains(dir)
	if err != nil {
		return Report{}, err
	}
	v := &verifier{
		dir: dir, checkpoints: checkpointDir, known: known,
		listed: map[string][]int{}, claims: map[string][]claim{}, retired: map[string]claim{},
	}
	all := map[string]bool{}
	for _, n := range names {
		all[n] = true
	}
	for _, c := range chains {
		all[c.name] = true
		v.listed[c.name] = c.segments
		v.remember(c)
	}
	rep := Report{Strays: strays}
	for i, msg := range elsewhere {
		h, err := parseHead(msg, known)
		if err != nil {
			return Report{}, fmt.Errorf("audit checkpoint %d kept elsewhere: %w", i+1, err)
		}
		all[h.chain] = true
		v.claim(h.chain, claim{h.size, h.root, "the checkpoint kept elsewhere"})
	}
	for chain := range v.claims {
		all[chain] = true // remembered, though neither file is left
	}
	for _, chain := range slices.Sorted(maps.Keys(all)) {
		rep.Chains = append(rep.Chains, v.chain(chain))
	}
	v.excuse(rep.Chains)
	return rep, nil
}

// A claim says that a chain had a root at a size, and who says so.
type claim struct {
	size int64
	root tlog.Hash
	by   string
}

type verifier struct {
	dir, checkpoints string
	known            note.Verifiers
	listed           map[string][]int   // segments, by chain
	claims           map[string][]claim // of other chains, by chain
	retired          map[string]claim   // tombstones, by chain
}

func (v *verifier) claim(chain string, c claim) {
	if chainForm().MatchString(chain) {
		v.claims[chain] = append(v.claims[chain], c)
	}
}

// remember takes from the first record of a chain what it saw of others.
// Should that record be false, its own chain is found broken.
func (v *verifier) remember(c chainFiles) {
	f, err := os.Open(filepath.Join(v.dir, segmentName(c.name, 1)))
	if err != nil {
		return
	}
	defer f.Close()
	line, _, err := newLineReader(f, 0).next()
	if err != nil {
		return
	}
	r, err := decode(line)
	if err != nil || r.Chain == nil || r.Event != Opened {
		return
	}
	for _, w := range r.Chain.Seen {
		if root, err := tlog.ParseHash(w.Root); err == nil && w.Size > 0 {
			v.claim(w.Chain, claim{w.Size, root, "chain " + c.name})
		}
	}
}

// excuse turns missing chains that were retired on purpose into that.
func (v *verifier) excuse(reports []ChainReport) {
	for i := range reports {
		r := &reports[i]
		if t, ok := v.retired[r.Chain]; ok && r.State == MissingFile && r.Records == 0 && r.Signed <= t.size {
			*r = ChainReport{Chain: r.Chain, State: RetiredNow, Signed: r.Signed, Notes: []string{"recorded in " + t.by}}
		}
	}
}

// chain verifies one chain.
func (v *verifier) chain(name string) ChainReport {
	rep := ChainReport{Chain: name, File: filepath.Join(v.dir, segmentName(name, 1))}
	hs, headErr := readHeads(v.checkpoints, name, v.known)
	if hs.newest != nil {
		rep.Signed = hs.newest.size
	}
	for _, h := range hs.history {
		rep.Signed = max(rep.Signed, h.size)
	}
	segments := v.segments(name) // after the head: they hold what it signs
	w := &walk{verifier: v, rep: &rep, claims: v.claimsOn(name, hs), lines: chainLines{dir: v.dir, name: name, segments: segments}}
	defer w.lines.close()
	w.run()
	if headErr != nil && rep.State == "" {
		rep.File, rep.Offset = filepath.Join(v.checkpoints, name+headSuffix), 0
		rep.State, rep.Problem = BadSignature, headErr.Error()
	}
	if rep.State == "" {
		w.conclude(hs)
	}
	if headErr != nil && rep.State != BadSignature {
		rep.Notes = append(rep.Notes, "checkpoint: "+headErr.Error())
	}
	if rep.State.OK() {
		maps.Copy(v.retired, w.retired)
		rep.Seq, rep.File, rep.Offset = 0, "", 0
	}
	return rep
}

// segments returns the segments of a chain: those listed, and those that its
// process has made since.
func (v *verifier) segments(name string) []int {
	out := slices.Clone(v.listed[name])
	for n := 1; len(out) == 0 || n == out[len(out)-1]+1; n = out[len(out)-1] + 1 {
		if _, err := os.Stat(filepath.Join(v.dir, segmentName(name, n))); err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

// claimsOn returns everything that is known of a chain, by size.
func (v *verifier) claimsOn(name string, hs heads) []claim {
	claims := slices.Clone(v.claims[name])
	for _, h := range hs.history {
		claims = append(claims, claim{h.size, h.root, "its checkpoint"})
	}
	if hs.newest != nil {
		claims = append(claims, claim{hs.newest.size, hs.newest.root, "the newest signed checkpoint"})
	}
	coldsort.Stable(claims, func(a, b claim) int { return int(min(1, max(-1, a.size-b.size))) })
	return claims
}
