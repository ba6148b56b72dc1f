package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/secret"
)

// agentFolder holds the tokens of named agents, each in a file with the agent's
// name.
const agentFolder = "agent-tokens"

// mostAgents is how many tokens of named agents are read.
const mostAgents = 256

// agentForm matches valid agent names: file names that are valid on every
// system.
var agentForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })

// named holds the tokens of named agents. Tokens that are added or removed
// while the server runs take effect at once.
type named struct {
	mu    sync.Mutex
	list  []namedToken
	onNew func(secret.Value)
}

type namedToken struct {
	name  string
	token secret.Value
	sum   [sha256.Size]byte
	file  fs.FileInfo
}

// load reads the folder. A file that cannot be used is skipped, and its agent
// is rejected.
func (n *named) load(dir string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reload(dir)
}

// reload is load, called with n.mu held.
func (n *named) reload(dir string) {
	names, err := agentNames(dir)
	if err != nil {
		n.list = nil
		return
	}
	list := make([]namedToken, 0, len(names))
	for _, name := range names {
		path := filepath.Join(dir, agentFolder, name)
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		text, err := read(path)
		if err != nil {
			continue
		}
		one := namedToken{name: name, token: secret.Of(text), sum: sha256.Sum256([]byte(text)), file: info}
		if n.onNew != nil && !slices.ContainsFunc(n.list, func(o namedToken) bool { return o.sum == one.sum }) {
			n.onNew(one.token)
		}
		list = append(list, one)
	}
	n.list = list
}

// find returns the agent whose token has this hash. It checks the file: a token
// is valid as long as its file exists.
func (n *named) find(dir string, sum [sha256.Size]byte) (name string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for try := range 2 {
		at := -1
		for i := range n.list {
			if subtle.ConstantTimeCompare(sum[:], n.list[i].sum[:]) == 1 {
				at = i
			}
		}
		if at >= 0 {
			one := n.list[at]
			info, err := os.Lstat(filepath.Join(dir, agentFolder, one.name))
			if err == nil && os.SameFile(info, one.file) && info.ModTime().Equal(one.file.ModTime()) && info.Size() == one.file.Size() {
				return one.name, true
			}
		}
		if try == 0 {
			n.reload(dir)
		}
	}
	return "", false
}

func (n *named) values() []secret.Value {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []secret.Value
	for _, one := range n.list {
		out = append(out, one.token)
	}
	return out
}

// OnNew registers f, which is called with every agent token that is found from
// now on. f must not call t.
func (t *Tokens) OnNew(f func(secret.Value)) {
	t.named.mu.Lock()
	defer t.named.mu.Unlock()
	t.named.onNew = f
}

// agentNames returns the names of files that can be agent tokens.
func agentNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, agentFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if agentForm().MatchString(e.Name()) && len(out) < mostAgents {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// An Agent is a program with its own token.
type Agent struct {
	Name string    `json:"name"`
	Made time.Time `json:"made"`
	File string    `json:"file"`
}

// Agents returns the agents that have their own token in the folder dir.
func Agents(dir string) ([]Agent, error) {
	names, err := agentNames(dir)
	if err != nil {
		return nil, err
	}
	var out []Agent
	for _, name := range names {
		path := filepath.Join(dir, agentFolder, name)
		if info, err := os.Lstat(path); err == nil {
			out = append(out, Agent{Name: name, Made: info.ModTime(), File: path})
		}
	}
	return out, nil
}

// CheckAgent returns an error if name is not the name of an agent.
func CheckAgent(name string) error {
	if agentForm().MatchString(name) {
		return nil
	}
	return &capability.Error{
		Kind: capability.Invalid, Op: "name an agent", Target: name, Err: errors.New("invalid name of an agent"),
		Fix: "use up to 64 of a-z, 0-9, dot, dash and underscore, beginning with a letter or a digit",
	}
}

// NamedAgent returns the token of one agent in the folder dir, which exists. If
// there is none, it creates one, or returns "" if look is set.
func NamedAgent(dir, name string, look bool) (string, error) {
	if err := CheckAgent(name); err != nil {
		return "", err
	}
	folder := filepath.Join(dir, agentFolder)
	path := filepath.Join(folder, name)
	if look {
		token, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return token, err
	}
	if names, err := agentNames(dir); err == nil && len(names) >= mostAgents && !slices.Contains(names, name) {
		return "", &capability.Error{
			Kind: capability.Unavailable, Op: "make a token", Target: name, Err: errors.New("limit of 256 agent tokens reached"),
			Fix: "remove some with `ken token rm NAME`",
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", &capability.Error{Kind: capability.Unavailable, Op: "make the access token", Target: path, Err: err, Fix: "see that its folder can be written"}
	}
	return readOrMake(path)
}

// RemoveAgent removes the token of one agent, which is rejected from then on.
// It reports whether there was one.
func RemoveAgent(dir, name string) (bool, error) {
	if !agentForm().MatchString(name) || strings.ContainsRune(name, filepath.Separator) {
		return false, nil
	}
	err := os.Remove(filepath.Join(dir, agentFolder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
