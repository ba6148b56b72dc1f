package audit

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"ken/internal/coldsort"
	"ken/internal/wholefile"
)

// chainForm is the form of a chain's name: when it was opened, by which
// process, and a random end. Names sort by time.
var chainForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{8}T\d{9}Z-\d+-[0-9a-f]{16}$`) })

// newChain names a chain.
func newChain(now time.Time) string {
	var end [8]byte
	_, _ = rand.Read(end[:]) // never fails
	stamp := strings.NewReplacer("-", "", ":", "", ".", "").Replace(formatTime(now))
	return fmt.Sprintf("%s-%d-%s", stamp, os.Getpid(), hex.EncodeToString(end[:]))
}

// chainTime is the time in a chain's name, in the form of timestamps.
func chainTime(chain string) string {
	return chain[0:4] + "-" + chain[4:6] + "-" + chain[6:11] + ":" + chain[11:13] + ":" + chain[13:15] + "." + chain[15:19]
}

// genesis is what the first record of a chain has for Prev: it ties the
// records to the name.
func genesis(chain string) tlog.Hash { return tlog.RecordHash([]byte("ken.audit.v1\n" + chain)) }

func segmentName(chain string, n int) string { return fmt.Sprintf("%s.%06d.jsonl", chain, n) }

// parseSegment takes a file name apart.
func parseSegment(name string) (chain string, n int, ok bool) {
	chain, rest, _ := strings.Cut(name, ".")
	digits, ok := strings.CutSuffix(rest, ".jsonl")
	n, err := strconv.Atoi(digits)
	return chain, n, ok && err == nil && n > 0 && chainForm().MatchString(chain) && segmentName(chain, n) == name
}

// A chainFiles is a chain as the directory shows it.
type chainFiles struct {
	name     string
	segments []int // ascending
}

// listChains returns the chains in dir by name, that is by time, and the names
// that are not ours. A directory that does not exist has none.
func listChains(dir string) (chains []chainFiles, strays []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("list audit chains: %w", err)
	}
	at := map[string]int{}
	for _, e := range entries {
		chain, n, ok := parseSegment(e.Name())
		if !ok {
			strays = append(strays, e.Name())
			continue
		}
		i, seen := at[chain]
		if !seen {
			i = len(chains)
			at[chain] = i
			chains = append(chains, chainFiles{name: chain})
		}
		chains[i].segments = append(chains[i].segments, n)
	}
	for _, c := range chains {
		slices.Sort(c.segments)
	}
	coldsort.By(chains, func(a, b chainFiles) int { return cmp.Compare(a.name, b.name) })
	return chains, strays, nil
}

// listHeads returns the names of chains that have a checkpoint file.
func listHeads(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list audit checkpoints: %w", err)
	}
	var names []string
	for _, e := range entries {
		if chain, ok := strings.CutSuffix(e.Name(), headSuffix); ok && chainForm().MatchString(chain) {
			names = append(names, chain)
		}
	}
	return names, nil // ReadDir sorts
}

// A segmentFile is what the log needs of a segment; tests give one that fails.
type segmentFile interface {
	io.Writer
	Truncate(size int64) error
	Sync() error
	Close() error
}

// createSegment makes the file of a new segment and its name durable.
func createSegment(path string) (segmentFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := wholefile.SyncFolder(filepath.Dir(path)); err != nil {
		f.Close()
		return nil, errors.Join(err, os.Remove(path)) // its name may be needed again
	}
	return newDataFile(f), nil
}
