package untrusted

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalikes lists, for each ASCII letter, characters that are hard to tell
// from it in common fonts, in either case: Cyrillic, Greek, Armenian, Georgian,
// Cherokee, Coptic, Lisu, letters of the phonetic alphabet and Latin letters with
// strokes and hooks. Forms that compatibility normalisation maps (full width, mathematical,
// circled, superscript) and letters with combining marks need no entry.
var lookalikes = [...]struct {
	to   rune
	from string
}{
	{'a', "аАɑαΑᴀᎪꓮⱥȺ"},
	{'b', "вВьЬβΒʙᏴɓƀƄƅꓐҍ"},
	{'c', "сСϲϹᴄᏟƈꓚⲥⲤҫȼ"},
	{'d', "ԁԀɗđĐᴅᎠɖꓓժ"},
	{'e', "еЕεΕɛᴇᎬ℮єЄҽꓰɇ"},
	{'f', "ƒϝϜꜰꓝғҒքᖴ"},
	{'g', "ɡցɢԌᏀǥɠꓖԍ"},
	{'h', "һҺнНηΗʜᎻհħĦɦꓧⲎңҢ"},
	{'i', "іІιΙıɩɪᎥɨꓲⲒ"},
	{'j', "јЈʝɉᴊᎫϳȷꓙյ"},
	{'k', "кКκΚᴋᏦƙқҚҝҟꓗⲔ"},
	{'l', "ӏӀƖǀʟᏞłŁɫꓡ∣|ƚլ"},
	{'m', "мМΜᴍᎷɱʍꓟⲘ"},
	{'n', "пПոΝɴŋŊƞɲƝꓠⲚղ"},
	{'o', "оОοΟσօՕᴏøØɵѳѲ੦૦०৹໐〇ⲟⲞꓳჿဝ"},
	{'p', "рРρΡᴘᏢƥꓑⲢⲣϸ"},
	{'q', "ԛԚզʠɋգ"},
	{'r', "гГᴦʀᏒɾɼɍꓣᎡⲅ"},
	{'s', "ѕЅꜱՏʂᏚƨꓢ"},
	{'t', "тТτΤᴛᎢŧŦƭʈꓔⲦҭ"},
	{'u', "υսʋᴜՍμʉꓴ"},
	{'v', "ѵѴνᴠᏙꓦѷ"},
	{'w', "ԝԜѡωաᴡᎳᏔꓪшɯ"},
	{'x', "хХχΧҳҲꓫⲬⲭ×"},
	{'y', "уУүҮγΥʏᎩɣƴყұҰꓬ"},
	{'z', "ᴢΖᏃƶʐʑȥꓜ"},
}

var lookalikeMap = sync.OnceValue(func() map[rune]rune {
	m := make(map[rune]rune, 512)
	for _, l := range lookalikes {
		for _, r := range l.from {
			m[r] = l.to
		}
	}
	return m
})

// fold returns the lower-case ASCII letter that r looks like, or r in lower
// case.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		return unicode.ToLower(r)
	}
	if to, ok := lookalikeMap()[r]; ok {
		return to
	}
	r = unicode.ToLower(r)
	if to, ok := lookalikeMap()[r]; ok {
		return to
	}
	return r
}

// decompose returns the compatibility decomposition of the rune at the start of
// s, whose encoding is size bytes. Kana are left alone: their marks are letters'
// parts, not decoration.
func decompose(s string, r rune, size int) string {
	if r < 0xA0 || in(r, 0x3040, 0x30FF) || in(r, 0xAC00, 0xD7A3) {
		return s[:size]
	}
	if d := norm.NFKD.PropertiesString(s).Decomposition(); d != nil {
		return string(d)
	}
	return s[:size]
}

// decorative reports combining marks that can be laid over any letter.
func decorative(r rune) bool {
	return in(r, 0x0300, 0x036F) || in(r, 0x0483, 0x0489) || in(r, 0x1AB0, 0x1AFF) ||
		in(r, 0x1DC0, 0x1DFF) || in(r, 0x20D0, 0x20FF) || in(r, 0xFE20, 0xFE2F)
}

// mixedScript reports a word in which Latin letters stand beside letters of a
// script that has look-alikes of them.
func mixedScript(word string) bool {
	latin, other := false, false
	for _, r := range word {
		switch {
		case r < utf8.RuneSelf:
			latin = latin || unicode.IsLetter(r)
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee,
			unicode.Coptic, unicode.Lisu, unicode.Georgian):
			// Micro and ohm are symbols of units, in whichever form.
			other = other || r != 'μ' && r != 'Ω' && r != 'ω' && unicode.IsLetter(r)
		}
	}
	return latin && other
}
