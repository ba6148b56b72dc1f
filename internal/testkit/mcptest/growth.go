package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
)

// manyMore is how many capabilities BenchmarkGrowth has.
const manyMore = 100_000

// grown writes a catalog of manyMore rows to a file: those of another, again and
// again under other names.
func grown(b *testing.B, from, to string) {
	b.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		b.Fatal(err)
	}
	rows := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	f, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for i := range manyMore {
		var row map[string]any
		if err := json.Unmarshal(rows[i%len(rows)], &row); err != nil {
			b.Fatal(err)
		}
		if round := i / len(rows); round > 0 {
			row["id"] = fmt.Sprintf("%s-%d", row["id"], round)
			row["name"] = fmt.Sprintf("%s_%d", row["name"], round)
			row["description"] = fmt.Sprintf("%s Part %d.", row["description"], round)
		}
		line, err := json.Marshal(row)
		if err != nil {
			b.Fatal(err)
		}
		w.Write(append(line, '\n'))
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
}

// firstCall calls the tool echo until that succeeds.
func firstCall(b *testing.B, url string) {
	b.Helper()
	session := dialHTTP(b, url, "")
	defer session.Close()
	call := &mcp.CallToolParams{Name: "invoke_capability", Arguments: map[string]any{"capability": "mcp:few/echo", "arguments": map[string]any{}}}
	testkit.Wait(b, "a call is answered", func() bool {
		res, err := session.CallTool(b.Context(), call)
		return err == nil && !res.IsError
	})
}

// search finds over the HTTP API.
func search(b *testing.B, at, wish string) {
	b.Helper()
	res, err := http.Get(strings.TrimSuffix(at, "/mcp") + "/api/v1/discover?q=" + url.QueryEscape(wish))
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil || res.StatusCode != http.StatusOK || body.Len() < 100 {
		b.Fatalf("search: %v, %s: %s", err, res.Status, &body)
	}
}
