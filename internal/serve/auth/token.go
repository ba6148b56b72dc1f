// Package auth decides who may use Ken over HTTP: the operator, by a token, and
// the people of a configured OpenID Connect issuer. It keeps other sites' pages
// away from a server on this machine, and limits the rate of requests.
package auth

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/secret"
	"ken/internal/wholefile"
)

const (
	fileName   = "token"
	agentName  = "agent-token"
	tokenBytes = 32
	tokenParam = "token" // in the page's address, and in the form
)

// Tokens holds the tokens that stand for the operator. That of
// the file token is for programs that decide for them as they do themselves.
// That of the file agent-token is for agents, and those in the folder
// agent-tokens are for one agent each, by its name: these go into the
// configurations of clients and decide nothing. Each stays until its file is
// removed. That of this start is for the page's link: it is in no file and void
// when the process ends. A Tokens may be used by many goroutines.
type Tokens struct {
	dir   string
	token secret.Value
	agent secret.Value
	start secret.Value
	sums  [3][sha256.Size]byte // in that order

	named named
	group Group // nil: this server is alone
}

// A Group is the servers that work as one with this one. They take each other's tokens
// and cookies.
type Group interface {
	// Name is the same for all of them.
	Name() string

	// Bearer returns whose a token is that another server has, by its SHA-256, and
	// Gone whether a token was removed by any.
	Bearer(sum [sha256.Size]byte) (owner, agent bool, name string)
	Gone(sum [sha256.Size]byte) bool

	// Sign signs a text for a use, and Verify reports whether any of them did.
	Sign(use, text string) []byte
	Verify(use, text string, signature []byte) bool
}

// Join makes the tokens count that others of a group have. It is called before the
// Tokens are used.
func (t *Tokens) Join(g Group) { t.group = g }

// A Published is a token as others may know it: by its SHA-256.
type Published struct {
	Sum   [sha256.Size]byte
	Owner bool
	Start bool   // of this start
	Name  string // of an agent with a token of its own
}

// Published returns all tokens that are valid now.
func (t *Tokens) Published() []Published {
	t.named.load(t.dir)
	out := []Published{{Sum: t.sums[0], Owner: true}, {Sum: t.sums[1]}, {Sum: t.sums[2], Owner: true, Start: true}}
	t.named.mu.Lock()
	defer t.named.mu.Unlock()
	for _, one := range t.named.list {
		out = append(out, Published{Sum: one.sum, Name: one.name})
	}
	return out
}

// Seed returns the secret of which the key is made that this server signs with for a
// group.
func (t *Tokens) Seed() []byte { return t.key("replica") }

// Open reads the tokens in the folder dir, which exists, or makes them: of
// processes that do so at once all get the same. It refuses a file that
// others can read or could have written.
func Open(dir string) (*Tokens, error) {
	token, err := readOrMake(filepath.Join(dir, fileName))
	if err != nil {
		return nil, err
	}
	agent, err := readOrMake(filepath.Join(dir, agentName))
	if err != nil {
		return nil, err
	}
	if agent == token { // a copy would let every agent decide, or none
		return nil, &capability.Error{
			Kind: capability.Denied, Op: "read the access token", Target: filepath.Join(dir, agentName),
			Err: errors.New("same token as the one that is not for agents"), Fix: "remove it, and a new one is made",
		}
	}
	t := &Tokens{dir: dir, token: secret.Of(token), agent: secret.Of(agent), start: secret.Of(random(tokenBytes))}
	for i, v := range [...]secret.Value{t.token, t.agent, t.start} {
		t.sums[i] = sha256.Sum256([]byte(v.Reveal()))
	}
	t.named.load(dir)
	return t, nil
}

func readOrMake(path string) (string, error) {
	token, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(path); err == nil {
			token, err = read(path)
		}
	}
	return token, err
}

// Token is for a program that may decide for the operator.
func (t *Tokens) Token() secret.Value { return t.token }

// Agent is for a client's configuration, and whatever else a model is behind.
func (t *Tokens) Agent() secret.Value { return t.agent }

// All returns all tokens that are known now, so that they can be redacted. See
// [Tokens.OnNew] for later ones.
func (t *Tokens) All() []secret.Value {
	return append([]secret.Value{t.token, t.agent, t.start}, t.named.values()...)
}

// Known returns the tokens that lie in the folder dir, as far as there are any
// that [Open] would take. It makes none.
func Known(dir string) []secret.Value {
	var out []secret.Value
	for _, name := range []string{fileName, agentName} {
		if token, err := read(filepath.Join(dir, name)); err == nil {
			out = append(out, secret.Of(token))
		}
	}
	var agents named
	agents.load(dir)
	return append(out, agents.values()...)
}

// Path is the file of [Tokens.Token], and AgentPath that of [Tokens.Agent].
func (t *Tokens) Path() string      { return filepath.Join(t.dir, fileName) }
func (t *Tokens) AgentPath() string { return filepath.Join(t.dir, agentName) }

// Link returns the page's address with the token of this start in it. base is the
// page's own address, as in http://127.0.0.1:7777.
//
// The link is printed, and a person opens it when and where they want: in
// another browser, a second time, after the first was closed. So it works as
// often as it is opened, but only as long as this server runs: a link in a
// terminal's history or in a log is worth nothing afterwards. The server takes
// the token out of the address at once; see [Guard].
func (t *Tokens) Link(base string) string {
	base, _, _ = strings.Cut(base, "#")
	base, _, _ = strings.Cut(base, "?")
	return strings.TrimRight(base, "/") + "/?" + tokenParam + "=" + t.start.Reveal()
}

// A bearer is the owner of a token. The zero value means that the token is
// unknown.
type bearer struct {
	owner, agent bool
	name         string // name of the agent, if the token is its own
	elsewhere    bool   // another server of the group says so
}

// right returns whose token a text is: one of the operator, or one of
// an agent. How long it takes does not depend on how wrong the text is.
func (t *Tokens) right(token string) bearer {
	if token == "" {
		return bearer{}
	}
	sum := sha256.Sum256([]byte(token))
	is := func(i int) int { return subtle.ConstantTimeCompare(sum[:], t.sums[i][:]) }
	own, of := is(0)|is(2), is(1)
	by := bearer{owner: own == 1, agent: of == 1}
	if !by.owner && !by.agent {
		by.name, by.agent = t.named.find(t.dir, sum)
	}
	switch {
	case t.group == nil:
	case t.group.Gone(sum):
		return bearer{}
	case !by.owner && !by.agent:
		by.owner, by.agent, by.name = t.group.Bearer(sum)
		by.elsewhere = by.owner || by.agent
	}
	return by
}

// key derives a key from the file's token. A new file makes all that was sealed
// with the old one void. Each use has a key of its own.
func (t *Tokens) key(use string) []byte {
	key, err := hkdf.Key(sha256.New, []byte(t.token.Reveal()), nil, "ken serve "+use+" 1", sha256.Size)
	if err != nil {
		panic(err) // the length is a constant
	}
	return key
}

func read(path string) (string, error) {
	bad := func(why, fix string) error {
		return &capability.Error{Kind: capability.Denied, Op: "read the access token", Target: path, Err: errors.New(why), Fix: fix}
	}
	const renew = "remove it, and a new one is made"
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if _, hidden := os.Lstat(path); errors.Is(hidden, fs.ErrPermission) { // the folder, and not the file
		dir := filepath.Dir(path)
		return "", &capability.Error{
			Kind: capability.Unavailable, Op: "read the access token", Target: path,
			Err: errors.New("permission denied for folder " + dir), Fix: "make the folder this user's own: chown it, and chmod 700",
		}
	}
	if err != nil {
		return "", bad(err.Error(), renew)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", bad(err.Error(), renew)
	case !info.Mode().IsRegular():
		return "", bad("not a regular file", renew)
	case !own(info):
		return "", bad("it belongs to another user", renew)
	case othersRead(info):
		return "", bad(fmt.Sprintf("its mode is %v: others may have read it", info.Mode().Perm()), renew)
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return "", bad(err.Error(), renew)
	}
	token := strings.TrimSuffix(string(b), "\n")
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(token); err != nil || len(raw) != tokenBytes {
		return "", bad(fmt.Sprintf("it does not hold %d bytes in base64url", tokenBytes), renew)
	}
	return token, nil
}

// create makes a token file whole or not at all, and leaves one that is there.
func create(path string) (err error) {
	defer func() {
		if err != nil {
			err = &capability.Error{Kind: capability.Unavailable, Op: "make the access token", Target: path, Err: err, Fix: "see that its folder can be written"}
		}
	}()
	if err = wholefile.Create(path, []byte(random(tokenBytes)+"\n")); errors.Is(err, fs.ErrExist) {
		return nil // another process was first
	}
	return err
}

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
