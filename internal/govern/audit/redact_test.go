package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/testkit"
)

// TestRedactForms: text with a secret (between « and ») and what must stay.
// The secrets are made up.
func TestRedactForms(t *testing.T) {
	for _, c := range []string{
		"Authorization: Bearer «abc.def-ghi»",
		"-H 'Authorization: Basic «dXNlcjpwYXNz»' https://x",
		`{"authorization":"Token «9f8e7d»"}`,
		"Proxy-Authorization: «anything at all»",
		"Cookie: «sid=1; theme=dark»",
		"Set-Cookie: «sid=abc; HttpOnly»",
		"curl: got bearer «abcdefgh12345»",
		"X-Api-Key: «k123»",
		"x-goog-api-key: «k123»",
		"Mcp-Session-Id: «1868a90c-e29a»",
		"postgres://bob:«s3cret»@db:5432/x",
		"postgres://bob:«s3/cr?t»@db/x",
		"redis://:«pw»@localhost",
		"https://«ghtoken123»@github.com/a/b",
		"https://bob:«p@ss»@host/path?q=1",
		"bob:«pw»@tcp(127.0.0.1:3306)/db",
		"PASSWORD=«hunter2» run",
		"export DB_PASSWORD='«hunter two»'",
		`"client_secret": "«a\"b»"`,
		"api_key: «abc»",
		"--token «abc» --verbose",
		"--db-password=«abc»",
		"?access_token=«abc»&page=2",
		"X-Amz-Signature=«0a1b»&x=1",
		"AccountKey=«abc==»;Endpoint=x",
		"aws_secret_access_key = «wJalr»",
		"curl -u bob:«pw» https://x",
		"mysql -h db -p«secret» -e x",
		"sshpass -p «secret» ssh x",
		"key «AKIAABCDEFGHIJKLMNOP» used",
		"«ghp_abcdefghijklmnopqrstuvwxyz0123456789»",
		"«github_pat_11ABCDEFG0abcdefghijkl_mnop»",
		"«gsk_AbCdEfGh0123456789IjKlMnOp»", "«xai-AbCdEfGh0123456789IjKlMnOp»", "«whsec_AbCdEfGh0123456789»",
		"«figd_AbCdEfGh-0123456789_IjKl»", "«ATATT3xFfGF0AbCdEfGh0123456789»",
		"«glpat-abcdefghijklmnopqrst»",
		"«xoxb-123456789-abcdef»",
		"«sk-ant-api03-abcdefghijklmnop»",
		"«sk_live_abcdefghijklmnop»",
		"«AIzaSyA1234567890abcdefghijklmnopqrstuv»",
		"«ya29.a0AfH6SMBabcdefghijk»",
		"«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def»",
		"«npm_abcdefghijklmnopqrstuvwxyz0123456789»",
		"«hf_abcdefghijklmnopqrstuvwx»",
		"«123456789:AAabcdefghijklmnopqrstuvwxyz012345»",
		"https://hooks.slack.com/services/«T000/B000/XXXX»",
		"«-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----» after",
		"«-----BEGIN PRIVATE KEY-----\nMIIE cut off»",
		"«AGE-SECRET-KEY-1QQPQ»",
		"«PRIVATE+KEY+ken-audit+12345678+AAAA»",

		// Nothing here is a secret.
		"Injected 2 capabilities (850 tokens): max_tokens=100",
		"git clone ssh://git@github.com/a/b",
		"http://localhost:8080/users/@me",
		"author: bob, the keyboard is monkey: 3",
		"exit status 3: no such file or directory",
		"tools.postman", "~/.ken/extensions/tools.postman/work", "hmac-sha256:00ff00ff",
		"select a, b from t where passenger = 1",
		"task-abcdefghijklmnopqrstuvwxyz",
		"https://example.com/?q=a@b.c",
	} {
		in := strings.NewReplacer("«", "", "»", "").Replace(c)
		want := regexp.MustCompile(`«[^»]*»`).ReplaceAllString(c, redacted)
		got := (*Redactor)(nil).String(in)
		if got != want {
			t.Errorf("String(%q) = %q, want %q", in, got, want)
		}
		if again := (*Redactor)(nil).String(got); again != got {
			t.Errorf("String(%q) = %q, want it unchanged", got, again)
		}
	}
}

// TestRedactHeld: a value that is held is found in every usual spelling.
func TestRedactHeld(t *testing.T) {
	const secret = "Tr0ub4dor & \"three\"/x"
	var r Redactor
	r.Hold(secret, "pin7", "", "line one is long enough\nline two is long enough")
	quoted := testkit.Must(json.Marshal(secret))(t)
	for _, in := range []string{
		secret, "a" + secret + "b", secret + secret, string(quoted), url.QueryEscape(secret), url.PathEscape(secret),
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"code pin7.", "got line two is long enough here",
	} {
		if got := r.String(in); !strings.Contains(got, redacted) || strings.Contains(got, "Tr0ub") || strings.Contains(got, "pin7") {
			t.Errorf("String(%q) = %q", in, got)
		}
	}
	for pad := range 4 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", pad) + secret + "tail"))
		if got := r.String(text); !strings.Contains(got, redacted) || len(got) > len(redacted)+12 {
			t.Errorf("String(%q) = %q: base64 after %d bytes", text, got, pad)
		}
	}
	if got := r.String("spinning pin71 pin7x"); got != "spinning pin71 pin7x" {
		t.Errorf("a short value inside words: %q", got)
	}
}

// TestRedactEscaped: a value is found in every spelling of its characters, also
// where only some are escaped, and also in a text that comes in pieces.
func TestRedactEscaped(t *testing.T) {
	const secret = `sec+ret/VAL=="quoted é😀" 12345`
	var r Redactor
	r.Hold(secret, "tok/abc+def")
	for _, in := range []string{
		`/echo?key=sec%2Bret%2FVAL%3D%3D%22quoted%20%C3%A9%F0%9F%98%80%22%2012345&x=1`,
		`/echo?key=sec%2bret%2fVAL%3d%3d%22quoted%20%c3%a9%f0%9f%98%80%22%2012345`,
		`{"error":"sec+ret\/VAL==\"quoted \u00e9\ud83d\ude00\" 12345"}`,
		`{"error":"sec\u002bret\u002FVAL==\u0022quoted \u00E9\uD83D\uDE00\u0022 12345"}`,
		`<p>sec+ret/VAL==&quot;quoted &#233;&#x1F600;&#34; 12345</p>`,
		`<p>sec&#43;ret&#x2f;VAL==&quot;quoted é😀&quot; 12345</p>`,
		`'sec+ret/VAL==\"quoted \xc3\xa9\xf0\x9f\x98\x80\" 12345'`,
		`%73ec+ret/VAL=="quoted é😀" 12345`, `sec+ret/VAL=="quoted é😀" 1234%35`,
		// Escaped more than once: an address within an address, JSON within JSON, and both.
		`sec%252bret%252fVAL%253d%253d%2522quoted%2520%25c3%25a9%25f0%259f%2598%2580%2522%252012345`, `sec%2bret%2fVAL%3d%3d%22quoted+%c3%a9%f0%9f%98%80%22+12345`,
		`sec%25252Bret%25252FVAL%25253D%25253D%252522quoted%252520%2525C3%2525A9%2525F0%25259F%252598%252580%252522%25252012345`,
		`{"body":"{\"error\":\"sec+ret\\/VAL==\\\"quoted \\u00e9\\ud83d\\ude00\\\" 12345\"}"}`, `{"a":"{\"b\":\"{\\\"c\\\":\\\"sec+ret/VAL==\\\\\\\"quoted é😀\\\\\\\" 12345`,
		`sec%2Bret%2FVAL%3D%3D%5C%22quoted+%C3%A9%F0%9F%98%80%5C%22+12345`, `<p>sec+ret/VAL==&amp;#34;quoted é😀&amp;quot; 12345`, `"sec+ret/VAL==\u0026#34;quoted é😀\u0026quot; 12345"`,
		`tok%252fabc+def`, `tok%25252fabc+def`, `tok\\/abc+def`, `tok\\u002fabc+def`, `tok%5C%2Fabc+def`, `tok&amp;#47;abc+def`, `tok\u005cu002fabc+def`, `%25tok%252Fabc%2bdef`,
		`tok\/abc+def`, `tok%2Fabc+def`, `100% tok/abc%2bdef &amp;c`, `&tok%2Fabc+def`, `%tok%2Fabc+def`, `\tok%2Fabc+def`,
	} {
		got := r.Held(in)
		if !strings.Contains(got, redacted) || strings.Contains(got, "ret") || strings.Contains(got, "12345") || strings.Contains(got, "abc") {
			t.Errorf("Held(%s) = %s", in, got)
		}
		for size := 1; size < 12; size++ {
			var out strings.Builder
			s := r.Stream(&out)
			for piece := range slices.Chunk([]byte(in), size) {
				testkit.Must(s.Write(piece))(t)
			}
			if err := s.Close(); err != nil || out.String() != got {
				t.Errorf("in pieces of %d bytes %s is %s, want %s; %v", size, in, out.String(), got, err)
			}
		}
	}
	for _, in := range []string{`100%`, `a & b; c`, `C:\users\tok`, `tok%2Fabc`, `%2Ftok/abc%2`, `\u00e9 &#233; %`, `&;`, `&#x110000;`, `\ud83d\u0041`, `tok%252Fabc`, `%252525`, `\\\\\\\`, `&amp;&amp;#4`, `tok%25`} {
		if got := r.Held(in); got != in {
			t.Errorf("Held(%s) = %s, want it as it is", in, got)
		}
	}
}

// TestRedactEscapedOften: a value is found however often and in whatever order it
// was escaped, up to three times.
func TestRedactEscapedOften(t *testing.T) {
	inJSON := func(s string) string {
		b := testkit.Must(json.Marshal(s))(t)
		return string(b[1 : len(b)-1])
	}
	ways := []func(string) string{
		url.QueryEscape, url.PathEscape, html.EscapeString, inJSON,
		func(s string) string { return strings.ReplaceAll(inJSON(s), "/", `\/`) },
		func(s string) string { // every byte, in lower case
			var b strings.Builder
			for _, c := range []byte(s) {
				fmt.Fprintf(&b, "%%%02x", c)
			}
			return b.String()
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Z0-9/+="'<>é😀]{7,20}`).Draw(t, "secret")
		var r Redactor
		r.Hold(secret)
		in := secret
		for _, way := range rapid.SliceOfN(rapid.IntRange(0, len(ways)-1), 1, 3).Draw(t, "ways") {
			in = ways[way](in)
		}
		if got := r.Held("before: " + in + " :after"); got != "before: [redacted] :after" {
			t.Fatalf("Held(%s) = %s with %s held", in, got, secret)
		}
	})
}

func TestCommandLine(t *testing.T) {
	var r Redactor
	r.Hold("two words")
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"git", "log", "--oneline"}, "git log --oneline"},
		{[]string{"echo", "it's", "a b", ""}, `echo 'it'\''s' 'a b' ''`},
		{[]string{"x", "--token", "abc", "-v"}, "x --token [redacted] -v"},
		{[]string{"x", "--token", "-abc"}, "x --token [redacted]"},
		{[]string{"x", "--api-key=abc"}, "x --api-key=[redacted]"},
		{[]string{"curl", "-u", "bob:pw", "https://x/"}, "curl -u bob:[redacted] https://x/"},
		{[]string{"curl", "-H", "Authorization: Bearer abcdef"}, "curl -H 'Authorization: Bearer [redacted]'"},
		{[]string{"/usr/bin/mysql", "-psecret", "db"}, "/usr/bin/mysql -p[redacted] db"},
		{[]string{"say", "two", "words"}, "say [redacted]"},
		{nil, ""},
	} {
		if got := r.CommandLine(c.argv); got != c.want {
			t.Errorf("CommandLine(%q) = %q, want %q", c.argv, got, c.want)
		}
	}
}

// TestRedactFindsAll: every place of every held value is found, as a search for
// each by itself finds them.
func TestRedactFindsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[aAbB@_ \x60\x00é]{0,40}`)
		var r Redactor
		r.Hold(rapid.SliceOfN(rapid.StringMatching(`[aAbB@_\x60é]{1,8}`), 0, 5).Draw(t, "held")...)
		s := text.Draw(t, "text")
		got := map[span]int{}
		for _, p := range r.exact(s, nil) {
			got[p]++
		}
		want := map[span]int{}
		for _, n := range r.held.Load().needles {
			for from := 0; from+len(n.text) <= len(s); from++ {
				to := from + len(n.text)
				if s[from:to] == n.text && (!n.word || !wordAt(s, from-1) && !wordAt(s, to)) {
					want[span{from, to}]++
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("exact(%q) = %v, want %v", s, got, want)
		}
	})
}

// TestEveryTextIsRedacted puts a held secret into every text field of a
// record, found by reflection: none of them reaches the line.
func TestEveryTextIsRedacted(t *testing.T) {
	const secret = "s3cr3t-value-held"
	cfg := testConfig(t)
	cfg.Redactor = new(Redactor)
	cfg.Redactor.Hold(secret)
	l := testOpen(t, cfg)
	r := Record{Event: Executed}
	fields := 0
	var fill func(v reflect.Value, name string)
	fill = func(v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.Name != "Chain" && f.Name != "Prev" && f.IsExported() && f.Type.String() != "time.Time" && f.Type.String() != "*time.Time" {
					fill(v.Field(i), f.Name)
				}
			}
		case reflect.String:
			fields++
			v.SetString(secret)
		case reflect.Pointer:
			if v.Type().Elem().Kind() == reflect.String {
				fields++
				v.Set(reflect.ValueOf(new(secret)))
			}
		case reflect.Map:
			fields++
			v.Set(reflect.ValueOf(map[string]string{secret: secret}))
		case reflect.Slice:
			fields++
			if name != "Isolation" {
				t.Fatalf("field %s: a new kind of field; teach this test and Record.texts about it", name)
			}
			v.SetBytes([]byte(`{"` + secret + `":["` + secret + `",{"a":"` + secret + `"}]}`))
		}
	}
	fill(reflect.ValueOf(&r).Elem(), "")
	if fields < 28 {
		t.Fatalf("%d text fields found", fields)
	}
	testAppend(t, l, r)
	segments, _ := files(t, cfg)
	data := mustRead(t, segments[0])
	if bytes.Contains(data, []byte(secret)) {
		t.Errorf("the secret is in the log: %s", data)
	}
	if n := bytes.Count(data, []byte(redacted)); n < fields {
		t.Errorf("%d redactions for %d fields: %s", n, fields, data)
	}
	if *r.Error != secret || r.Metadata.Notes[secret] != secret {
		t.Error("Append changed the caller's record")
	}
}

// TestLongTextIsCutAloud: what does not fit says how much is missing.
func TestLongTextIsCutAloud(t *testing.T) {
	cfg := testConfig(t)
	l := testOpen(t, cfg)
	testAppend(t, l, Record{Event: Executed, CommandLine: strings.Repeat("w", maxLong+10), Isolation: []byte(`"` + strings.Repeat("w", maxLong) + `"`)})
	got := collect(t, cfg.Dir, Filter{Event: string(Executed)})[0].Record
	if !strings.HasSuffix(got.CommandLine, "w[cut: 10 more bytes]") || !strings.Contains(string(got.Isolation), "cut") {
		t.Errorf("command line ends %q, isolation %s", got.CommandLine[maxLong-5:], got.Isolation)
	}
}

// TestIsolationIsRedacted: what is remembered of an isolation is forgotten when
// a value becomes known.
func TestIsolationIsRedacted(t *testing.T) {
	var r Redactor
	raw := json.RawMessage(`{"missing":["files: but not hunter2hunter2"]}`)
	clean := func() string {
		t.Helper()
		rec := Record{Isolation: raw}
		testkit.OK(t, rec.clean(&r))
		return string(rec.Isolation)
	}
	if a, b := clean(), clean(); a != string(raw) || a != b {
		t.Errorf("clean = %s, then %s, want it as it is", a, b)
	}
	r.Hold("hunter2hunter2")
	if a, b := clean(), clean(); strings.Contains(a, "hunter2") || a != b {
		t.Errorf("clean = %s, then %s, want the value gone", a, b)
	}
}
