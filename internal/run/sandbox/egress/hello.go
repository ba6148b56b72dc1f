package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"
)

// maxHello bounds a TLS ClientHello: one record.
const maxHello = 1<<14 + 5

var errNotTLS = errors.New("expected a TLS ClientHello")

// readHello reads the first TLS record a client sends.
func readHello(conn net.Conn, from *bufio.Reader, patience time.Duration) ([]byte, error) {
	conn.SetReadDeadline(time.Now().Add(patience))
	defer conn.SetReadDeadline(time.Time{})
	head := make([]byte, 5)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	size := int(head[3])<<8 | int(head[4])
	if head[0] != 22 || head[1] != 3 || size+5 > maxHello {
		return nil, errNotTLS
	}
	record := append(head, make([]byte, size)...)
	_, err := io.ReadFull(from, record[5:])
	return record, err
}

// checkName compares the server a ClientHello names with the host asked for.
// An address cannot be named, and a hello without a name to a named host is
// refused: it could be meant for anyone behind that address.
func checkName(record []byte, host string) error {
	name, err := serverName(record)
	if err != nil {
		return err
	}
	if _, err := netip.ParseAddr(host); err == nil && name == "" {
		return nil
	}
	if !strings.EqualFold(strings.TrimSuffix(name, "."), host) {
		return fmt.Errorf("the TLS handshake names %q, not the requested host", name)
	}
	return nil
}

// A cursor reads big-endian lengths and never past its end.
type cursor struct {
	b  []byte
	ok bool
}

func (c *cursor) take(n int) []byte {
	if !c.ok || n > len(c.b) {
		c.ok = false
		return nil
	}
	p := c.b[:n]
	c.b = c.b[n:]
	return p
}

func (c *cursor) number(size int) int {
	n := 0
	for _, b := range c.take(size) {
		n = n<<8 | int(b)
	}
	return n
}

// block reads a length of size bytes and returns what it spans.
func (c *cursor) block(size int) *cursor {
	n := c.number(size)
	return &cursor{c.take(n), c.ok}
}

// serverName finds the host name in a ClientHello that fills one record; ""
// when it names none.
func serverName(record []byte) (string, error) {
	c := &cursor{record, true}
	c.take(5)
	if kind := c.number(1); kind != 1 {
		return "", errNotTLS
	}
	hello := c.block(3)
	hello.take(2 + 32)
	hello.block(1) // session
	hello.block(2) // ciphers
	hello.block(1) // compression
	if hello.ok && len(hello.b) == 0 {
		return "", nil
	}
	extensions := hello.block(2)
	name := ""
	for extensions.ok && len(extensions.b) > 0 {
		kind, body := extensions.number(2), extensions.block(2)
		if kind != 0 || !body.ok {
			continue
		}
		for list := body.block(2); list.ok && len(list.b) > 0; {
			nameKind, text := list.number(1), list.block(2)
			if nameKind == 0 && text.ok && name == "" {
				name = string(text.b)
			}
		}
	}
	if !extensions.ok {
		return "", errNotTLS
	}
	return name, nil
}
