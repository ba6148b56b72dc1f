package source

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode"

	"ken/capability"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// Capability cards: Markdown with frontmatter that says when the card is to be
// shown. The frontmatter is the place where a card is described; a registry
// (see registry.go) only fills in what it leaves out.

const (
	maxCardTokens        = 2000
	defaultCardTokens    = 800 // the default of max_chars, 3,200, at four characters a token
	defaultCardPriority  = 5
	defaultCardThreshold = 0.6
	cardMinChars         = 200
	cardMaxChars         = 800
	charsPerToken        = 4
)

func cardFormat() format {
	return format{name: "card", claims: isCard, lives: livesAsCard, limit: safefs.TextLimit, read: readCard}
}

// isCard: a Markdown file whose frontmatter has triggers. README.md is the
// folder's index, never a card.
func isCard(p string, head []byte) bool {
	return isPage(p) && frontmatterHas(head, "triggers", "capability_id", "capabilityId", "capability-id")
}

// livesAsCard: a Markdown file in a folder for cards.
func livesAsCard(place string) bool {
	return isPage(place) && (safefs.InFolder(place, "cards") || strings.HasSuffix(path.Dir("/"+place), "/docs/capabilities"))
}

// frontmatterHas reports whether the beginning of a file opens frontmatter
// with one of the keys.
func frontmatterHas(head []byte, keys ...string) bool {
	pg, closed := cutPage(head)
	if !pg.found {
		return false
	}
	text := pg.head
	if !closed {
		text = head // longer than what was read of the file
	}
	for _, key := range keys {
		if bytes.HasPrefix(text, []byte(key+":")) || bytes.Contains(text, []byte("\n"+key+":")) {
			return true
		}
	}
	return false
}

func readCard(u *unit) {
	data, ok := u.text(u.path, u.data, false)
	if !ok {
		return
	}
	pg, err := splitPage(data, yamldoc.Limits{})
	if err != nil {
		u.faultErr("bad-frontmatter", u.path, pg.metaLine, err)
		return
	}
	if !pg.found {
		u.fault("bad-frontmatter", u.path, 1, "the card has no frontmatter", "begin it with a line ---, then capability_id, triggers and so on, then ---")
		return
	}
	at := func(line int) (string, int) { return u.path, pg.line(line) }
	body := strings.TrimSpace(pg.body)
	if c := u.card(pg.meta, body, cardName(u.path), at); c != nil {
		u.lintCard(c, body, u.path)
		u.bodyLine = pg.textLine()
		u.add(c, capability.Detail{Body: body}, u.path, 1)
	}
}

func cardName(p string) string { return strings.TrimSuffix(path.Base(p), path.Ext(p)) }

// A placer turns a line of a card's metadata into a file and its line.
type placer func(line int) (p string, fileLine int)

// card makes a card of its metadata, or records why it is none and gives nil.
func (u *unit) card(meta *yamldoc.Map, body, fallback string, at placer) *capability.Capability {
	r := yamldoc.NewReader(meta)
	t := r.Map("triggers")
	c := cardFrom(r, t)
	if c.Name == "" {
		c.Name = fallback
		p, line := at(r.Line("name"))
		u.warn("card-id", p, line, fmt.Sprintf("the card has no capability_id; it is called %s after its file", fallback), "add capability_id: "+fallback)
	}
	c.ID = capability.ID(c.Name)
	if c.Description == "" {
		c.Description, _ = summaryOf(body)
	}
	r.Field("filePath", "file") // a registry's, of no meaning in the card itself
	u.keepCardRest(c, r, t, at)
	lost := map[int]bool{} // lines of which the worst is said
	faults := checkCard(c, r, t)
	for _, bad := range faults {
		p, line := at(bad.line)
		u.fault(bad.code, p, line, bad.message, bad.fix)
		lost[bad.line] = true
	}
	said := map[yamldoc.Error]bool{} // a key that is asked for twice complains twice
	for _, e := range r.Issues() {
		if !said[*e] && !lost[e.Line] {
			said[*e] = true
			p, line := at(e.Line)
			e = e.Moved(line - e.Line)
			u.warn("bad-value", p, line, e.Message, e.Fix)
		}
	}
	if len(faults) > 0 {
		return nil
	}
	return c
}

// cardFrom reads a card's metadata, in any spelling, with the defaults of the
// format.
func cardFrom(r, triggers *yamldoc.Reader) *capability.Capability {
	c := &capability.Capability{
		Kind:        capability.KindCard,
		Name:        strings.TrimSpace(r.String("capabilityId", "id")),
		Description: foldSpace(r.String("description")),
		DisplayName: foldSpace(r.String("name")),
		Category:    r.String("category"),
		Tags:        r.Words("tags"),
		Aliases:     r.Words("aliases"),
		Version:     r.String("version"),
		Priority:    defaultCardPriority,
		Triggers:    triggersFrom(triggers),
	}
	if n, ok := r.Int("priority"); ok {
		c.Priority = n
	}
	c.TokenBudget, _ = r.Int("tokenBudget", "estimatedTokens")
	c.MaxChars, _ = r.Int("maxChars")
	if c.MaxChars == 0 && c.TokenBudget > 0 && c.TokenBudget <= maxCardTokens {
		c.MaxChars = charsPerToken * c.TokenBudget
	}
	if c.MaxChars == 0 {
		c.MaxChars = charsPerToken * defaultCardTokens
	}
	if c.Triggers.SessionTypes == nil {
		c.Triggers.SessionTypes = []string{"main", "isolated"}
	}
	c.Migrations = migrationsFrom(r)
	return c
}

// triggersFrom reads a map of triggers; what is not said does not restrict.
func triggersFrom(t *yamldoc.Reader) *capability.Triggers {
	out := &capability.Triggers{
		Keywords:            keywordsFrom(t),
		SessionTypes:        t.Words("sessionTypes"),
		RouterTags:          t.Words("routerTags"),
		TimeOfDay:           t.Words("timeOfDay"),
		UserTier:            t.Words("userTier"),
		EnvironmentType:     t.Words("environmentType"),
		ConfidenceThreshold: defaultCardThreshold,
	}
	if x, ok := t.Float("confidenceThreshold"); ok {
		out.ConfidenceThreshold = x
	}
	return out
}

// keywordsFrom leaves out empty keywords, which would match every message.
func keywordsFrom(t *yamldoc.Reader) []string {
	var words []string
	for _, word := range t.Strings("keywords") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		} else {
			t.Issue(t.Line("keywords"), "an empty keyword is left out, since it would match everything", "remove it")
		}
	}
	return words
}

// keepCardRest keeps what a card says beyond the keys that are known.
func (u *unit) keepCardRest(c *capability.Capability, r, t *yamldoc.Reader, at placer) {
	keep := func(prefix string, from *yamldoc.Reader) {
		for _, f := range from.Rest() {
			setMeta(c, prefix+f.Key, f.Value)
			p, line := at(f.Line)
			meant := from.Suggest(f.Key)
			if meant != "" {
				meant = prefix + meant
			}
			u.mentionKept("card", p, line, prefix+f.Key, meant)
		}
	}
	keep("", r)
	keep("triggers.", t)
}

// setMeta keeps a value that has no field of its own: text as it is, anything
// else as JSON.
func setMeta(c *capability.Capability, key string, v yamldoc.Value) {
	if v.Any == nil {
		return
	}
	if c.Meta == nil {
		c.Meta = map[string]string{}
	}
	switch s, isText := v.Any.(string); {
	case isText:
		c.Meta[key] = s
	case v.Text != "":
		c.Meta[key] = v.Text
	default:
		c.Meta[key] = string(v.JSON())
	}
}

// A cardFault is a rule that rejects a card. The messages begin with the
// seed's own words, which other programs may look for.
type cardFault struct {
	code, message, fix string
	line               int
}

// checkCard returns all that is wrong with a card, so that one look mends it.
func checkCard(c *capability.Capability, r, t *yamldoc.Reader) []cardFault {
	var out []cardFault
	bad := func(line int, code, message, fix string) { out = append(out, cardFault{code, message, fix, line}) }
	if strings.ContainsFunc(c.Name, unicode.IsControl) {
		bad(lineOfAny(r, "capabilityId", "id"), "bad-id", fmt.Sprintf("capability_id %q holds a control character", c.Name), "write it in one line of plain text")
	}
	budget := lineOfAny(r, "tokenBudget", "estimatedTokens")
	switch {
	case c.TokenBudget > maxCardTokens:
		bad(budget, "token-budget", fmt.Sprintf("Token budget exceeds maximum: %d is more than %d", c.TokenBudget, maxCardTokens),
			fmt.Sprintf("set token_budget to %d or less", maxCardTokens))
	case c.MaxChars > charsPerToken*maxCardTokens:
		bad(r.Line("maxChars"), "token-budget", fmt.Sprintf("Token budget exceeds maximum: max_chars %d is more than %d", c.MaxChars, charsPerToken*maxCardTokens),
			fmt.Sprintf("set max_chars to %d or less", charsPerToken*maxCardTokens))
	case c.TokenBudget < 0 || c.MaxChars < 0:
		bad(lineOfAny(r, "tokenBudget", "estimatedTokens", "maxChars"), "token-budget", "the token budget is negative", "set token_budget to a positive number")
	}
	if !keywordsAreList(t) {
		bad(max(lineOfAny(t, "keywords"), lineOfAny(r, "triggers")), "keywords", "Invalid triggers.keywords: want a list", "write triggers: then keywords: [first, second]")
	}
	if c.Priority < 0 || c.Priority > 100 {
		bad(r.Line("priority"), "priority", fmt.Sprintf("Priority out of range: %d is not within 0 to 100", c.Priority), "set priority between 0 and 100")
	}
	if threshold := c.Triggers.ConfidenceThreshold; threshold < 0 || threshold > 1 {
		bad(t.Line("confidenceThreshold"), "threshold", fmt.Sprintf("confidence threshold %g is not within 0 to 1", threshold), "set confidence_threshold between 0 and 1")
	}
	return out
}

// lineOfAny returns the line of the first of the keys that is there, else the
// line of the map.
func lineOfAny(r *yamldoc.Reader, keys ...string) int {
	for _, key := range keys {
		if f, ok := r.Field(key); ok {
			return f.Line
		}
	}
	return r.Line(keys[0])
}

func keywordsAreList(triggers *yamldoc.Reader) bool {
	f, ok := triggers.Field("keywords")
	if !ok {
		return false
	}
	_, isList := f.Value.Any.([]yamldoc.Value)
	return isList
}

// lintCard says what is unwise about a card that is taken all the same.
func (u *unit) lintCard(c *capability.Capability, body, p string) {
	n := len([]rune(body))
	if n > 0 && (n < cardMinChars || n > cardMaxChars) {
		do := "lengthen"
		if n > cardMaxChars {
			do = "shorten"
		}
		u.warn("card-size", p, 0, fmt.Sprintf("the card has %d characters; cards read best with %d to %d", n, cardMinChars, cardMaxChars),
			fmt.Sprintf("%s the text below the frontmatter to %d–%d characters", do, cardMinChars, cardMaxChars))
	}
	if n == 0 {
		u.warn("card-empty", p, 0, "the card has no text below its frontmatter", "say what the capability does and how to use it")
	}
	if n > c.MaxChars {
		u.warn("card-over-budget", p, 0, fmt.Sprintf("the card has %d characters but declares room for %d; the rest is never shown", n, c.MaxChars), "raise token_budget or shorten the card")
	}
	if t := c.Triggers; len(t.Keywords) == 0 && len(t.RouterTags) == 0 {
		u.warn("card-no-keywords", p, 0, "the card has neither keywords nor router tags, so no message calls for it", "add some to triggers.keywords")
	}
}

// migrationsFrom reads notes for users of earlier versions. A note that names
// no version to go to is about the present one.
func migrationsFrom(r *yamldoc.Reader) []capability.Migration {
	var out []capability.Migration
	for _, m := range r.Items("migrations") {
		next := capability.Migration{From: m.String("from"), To: m.String("to"), Note: foldSpace(m.String("note"))}
		if next.To == "" {
			next.To = r.String("version")
		}
		out = append(out, next)
	}
	return out
}
