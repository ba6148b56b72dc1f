package untrusted

import (
	"regexp"
	"sync"
)

// A rule finds one kind of phrase in normalised text: lower case, no invisible
// characters, white space as it was.
type rule struct {
	name string
	// severity is what a match counts for; signal means that it counts only
	// together with others, as [poisonings] say.
	severity Severity
	// near lists topics of which the text must have at least one each. The
	// expression is tried around keywords of the first.
	near    []topic
	pattern string
	// within means that the expression may begin before the keyword; else it is
	// tried only at words that the keyword may begin.
	within bool
	// beside means that the rule is tried only around other signals, for it
	// counts only together with them.
	beside bool
	// command means that the phrase is Hard only as a command; as a statement
	// about others it is Soft.
	command bool
	// bounded means that "… found in the document" after the match turns it
	// from an attack into advice against one.
	bounded bool
}

// signal is the severity of matches that are not reported by themselves.
const signal Severity = 0

// Pieces of the expressions. Words are apart by anything that is neither letter
// nor digit, line ends included.
const (
	sp     = `[^\pL\pN]+`
	upTo2  = `(?:[\pL\pN'’]+` + sp + `){0,2}?`
	upTo4  = `(?:[\pL\pN'’]+` + sp + `){0,4}?`
	ignore = `\b(?:ignore|disregard|forget|overlook|neglect|discard)` + sp
	// orders are what only a model is given; matters are what anyone may ignore.
	orders  = `(?:instructions?|prompts?|directives?|directions?|guidelines?)\b`
	matters = `(?:rules?|commands?|constraints?|restrictions?|polic(?:y|ies)|programming|training|guidance|context|` +
		`messages?|conversations?|texts?|contents?|inputs?|requests?)\b`
	earlier = `(?:previous|prior|above|earlier|preceding|foregoing|former|past|initial|original|existing|` +
		`aforementioned|system|developer)`
	reader = `(?:users?|humans?|operators?|customers?)\b`
	// secretFile is a file that only an attacker sends a reader to; secret is
	// also whatever else must not get out.
	secretFile = `(?:\.ssh\b|\bid_(?:rsa|ed25519|ecdsa|dsa)(?:[^.\w]|$)|(?:^|[^\w.])\.env\b|\.aws/cred|\.netrc\b|\.git-credentials|` +
		`\bmcp\.json|desktop_config|/etc/(?:passwd|shadow))`
	secret = `(?:\.ssh\b|\bid_(?:rsa|ed25519|ecdsa|dsa)(?:[^.\w]|$)|(?:^|[^\w.])\.env\b|\.aws/|\.netrc\b|\.npmrc\b|\.pypirc\b|` +
		`\.git-credentials|\.kube/config|\bmcp\.json|desktop_config|/etc/(?:passwd|shadow)|\bprivate keys?\b|` +
		`\bapi[ _-]?keys?\b|\bsecret[ _-]keys?\b|\bcredentials\b|\bkeychain\b|\bseed phrase|\benvironment variables?\b)`
)

// rules is the table. The three phrases of the first design document are
// override-instructions, disregard-above and new-instructions.
var rules = []rule{
	{name: "override-instructions", severity: Hard, near: []topic{tIgnore},
		pattern: ignore + upTo4 + earlier + sp + upTo2 + orders},
	{name: "override-instructions", severity: Hard, near: []topic{tIgnore}, command: true,
		pattern: ignore + upTo4 + earlier + sp + upTo2 + matters},
	{name: "override-instructions", severity: Hard, near: []topic{tIgnore}, command: true, bounded: true,
		pattern: ignore + upTo2 + `(?:all|any|every|your|my|these|those|such)` + sp + upTo2 + `(?:instructions?|directives?|guidelines?)\b`},
	{name: "override-instructions", severity: Hard, near: []topic{tIgnore}, command: true,
		pattern: ignore + upTo4 + `(?:` + orders + `|rules?|everything|anything|all|texts?|what|whatever|contents?|messages?)` + sp + upTo4 +
			`(?:above|so far|previously|earlier|until now|up to (?:here|now|this point)|before this|given to you|` +
			`you(?:` + sp + `(?:have|had|were|was|are|ve|re))?` + sp + `(?:been|told|given|know|learned|learnt|received|got|read|seen))\b`},
	{name: "override-instructions", severity: Hard, near: []topic{tIgnore},
		pattern: `(?:ignore|disregard|forget)(?:all|any|the|my|your|every|of)*(?:previous|prior|above|earlier)(?:instruction|prompt|directive|rule|guideline)`},
	{name: "disregard-above", severity: Soft, near: []topic{tAbove}, within: true,
		pattern: `disregard[^\n\r]{0,380}above`},
	{name: "disobey-instructions", severity: Hard, near: []topic{tNotObey},
		pattern: `\b(?:not|don.?t|never|stop|cease|longer|refuse to)` + sp + upTo2 + `(?:follow|obey|comply with|adhere to|listen to|respect|honou?r|heed)(?:ing)?` + sp +
			upTo2 + `(?:` + earlier + `|your|old)` + sp + upTo2 + `(?:` + orders + `|rules?\b|orders?\b|constraints?\b|polic(?:y|ies)\b|programming\b)`},
	{name: "new-instructions", severity: Hard, near: []topic{tNewOrder},
		pattern: `\bnew\s+instructions?[\s*_"”]*:`},
	{name: "new-instructions", severity: Soft, near: []topic{tNewOrder},
		pattern: `\b(?:new|updated|revised|real|actual|true|secret|hidden|overriding)\s+instructions?[\s*_"”]*(?:[:=–—-]|\b(?:follow|are|begin|below|as follows)\b)`},
	{name: "new-instructions", severity: Soft, near: []topic{tNewOrder}, within: true,
		pattern: `\b(?:follow|obey|execute|adhere to|comply with)` + sp + `(?:only )?(?:these|the following)` + sp + `(?:new )?instructions?` + sp + `(?:instead|only|exclusively|without question)\b`},
	{name: "persona", severity: Hard, near: []topic{tPersona},
		pattern: `\byou are now (?:in )?(?:an? )?(?:dan|jailbroken|unrestricted|unfiltered|uncensored|root|god mode|dan mode)\b`},
	{name: "persona", severity: Soft, near: []topic{tPersona},
		pattern: `\b(?:from now on,? you (?:are|will|must|should|shall|only)|your (?:new|real|true|only) (?:role|task|goal|objective|purpose|mission|instructions?|job|identity) (?:is|are)|you are now an?)\b`},
	{name: "persona", severity: Soft, near: []topic{tPersona}, within: true,
		pattern: `\b(?:(?:enter|enable|activate) (?:dan|god|jailbreak) mode|do anything now)\b`},
	{name: "reveal-prompt", severity: Soft, near: []topic{tPrompt}, within: true,
		pattern: `\b(?:reveal|repeat|print|output|leak|disclose|show|display|tell)` + sp + upTo4 + `(?:your|the hidden|the initial|the original)` + sp + upTo2 + `(?:system prompt|prompt|instructions)\b`},
	{name: "conceal", severity: Soft, near: []topic{tTell | tCovert},
		pattern: `\b(?:(?:do|must|should|can|may|shall|will)` + sp + `not|cannot|don.?t|never|without|avoid)` + sp + `(?:\w+ly )?(?:(?:tell|inform|mention|notify|reveal|disclose|alert|report)(?:ing)?` + sp + upTo4 + reader + `|(?:show|let)(?:ing|ting)?` + sp + `(?:this to )?the` + sp + `(?:user|human)\b)`},
	{name: "conceal", severity: Soft, near: []topic{tUntold}, within: true,
		pattern: `\b` + reader + sp + `(?:should|must|need|will)` + sp + `not` + sp + `(?:be )?(?:notified|informed|told|know|aware|made aware|see this|notice)\b`},
	{name: "conceal", severity: Soft, near: []topic{tCovert}, within: true,
		pattern: `\b(?:without` + sp + `(?:the )?(?:user|human)(?:.?s)?` + sp + `(?:knowing|knowledge|awareness|noticing)|(?:hide|conceal|keep)` + sp + upTo4 + `from` + sp + `(?:the )?(?:user|human))\b`},
	{name: "covert-action", severity: Soft, near: []topic{tCovert},
		pattern: `\b(?:secretly|silently|covertly|quietly|stealthily)` + sp + `(?:send|upload|copy|forward|collect|exfiltrate|transmit|email|post|read|include|append|bcc)\b`},
	{name: "silence", severity: signal, near: []topic{tTell},
		pattern: `\b(?:do` + sp + `not|don.?t|never)` + sp + `(?:tell|inform|mention|notify|reveal|disclose|alert|report)\b`},
	{name: "secret", severity: signal, beside: true, pattern: secret},
	{name: "secret-file", severity: signal, near: []topic{tSecret}, within: true, pattern: secretFile},
	{name: "secret-exfiltration", severity: Soft, near: []topic{tSecret}, within: true,
		pattern: `\b(?:send|upload|post|exfiltrate|transmit|email|forward|leak|curl|wget|submit)\b[^.\n]{0,20}[^\n]{0,60}(?:\.ssh/|id_(?:rsa|ed25519|ecdsa|dsa)(?:[^.\w]|$)|[^\w.]\.env\b|\.aws/|\.netrc\b|\.git-credentials|/etc/(?:passwd|shadow)|\bprivate keys?\b|\bseed phrase)`},
	{name: "called-first", severity: signal, beside: true,
		pattern: `\b(?:must|always|should|need to|required|mandatory)\b[^\n]{0,40}\b(?:call|called|use|used|invoke|invoked|run|executed?)\b[^\n]{0,30}\b(?:first|before)\b`},
	{name: "hijack", severity: signal, beside: true,
		pattern: `\b(?:when|whenever|if|each time|every time|after)\b[^\n]{0,80}\b(?:first|always|must|immediately|also|you should)` + sp + upTo2 + `(?:call|use|invoke|run|execute|read|send|open|cat|fetch|include|change)\b`},
	{name: "hijack", severity: signal, beside: true,
		pattern: `\b(?:before|prior to)` + sp + `(?:using|calling|invoking|running|answering|responding|any|every|you)\b[^\n]{0,60}\b(?:read|call|send|open|cat|fetch|access|run|execute|load|include|pass)\b`},
	{name: "conversation", severity: signal, beside: true,
		pattern: `\b(?:whole|entire|full|complete|all)` + sp + upTo2 + `(?:conversation|chat|messages?|prompt|context|session|history)\b`},
	{name: "divert", severity: signal, beside: true,
		pattern: `\b(?:change|replace|redirect|swap|substitute|set)\b[^\n]{0,40}\b(?:recipient|destination|address|wallet|payee|iban|account|endpoint)\b`},
	{name: "decode-and-follow", severity: Soft, near: []topic{tDecode},
		pattern: `\b(?:decode|decrypt|deobfuscate)\b[^\n]{0,60}\b(?:and|then)` + sp + upTo2 + `(?:follow|obey|execute|comply|carry out)\b`},
	{name: "hidden-html", severity: Soft, near: []topic{tHide}, within: true,
		pattern: `<\w+\s[^>]{0,200}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?:[^.\d]|$)|color\s*:\s*(?:white|transparent|#fff))[^>]{0,200}>\s*[^<\s]`},
	{name: "image-exfiltration", severity: Soft, near: []topic{tImage}, within: true,
		pattern: `!\[[^\]]{0,100}\]\(https?://[^)\s]{1,200}[?&/=](?:[^)\s]{0,100})(?:\{\{?\w|\$\{|\[(?:data|secret|conversation|history|summary|key)|<(?:data|secret|conversation|history|summary|key))`},
	{name: "override-instructions", severity: Hard, near: []topic{tForeign, tForeignIn},
		pattern: foreignIgnore + upTo4 + foreignAll + sp + upTo4 + foreignOrders},
	{name: "override-instructions", severity: Hard, near: []topic{tForeign, tForeignIn},
		pattern: foreignIgnore + upTo4 + foreignOrders + sp + upTo2 + foreignAll},
	{name: "override-instructions", severity: Hard, near: []topic{tForeign, tForeignIn}, within: true, // verb last: Turkish
		pattern: foreignAll + sp + upTo2 + foreignOrders + sp + upTo2 + `(?:yoksay\pL*|gormezden|unutun)`},
}

// Spanish, Portuguese, Italian, French, German, Dutch, Polish, Turkish and
// Indonesian, without their accents.
const (
	foreignIgnore = `\b(?:ignor(?:a|ar|e|ez|er|i|en|ad|ate|are|iere|iert|ieren|eer)|olvid(?:a|e|ar|en)|oubli(?:e|ez|er)|esquec(?:a|e|er)|dimentica(?:re|te)?|` +
		`descarta|desconsidere|vergiss|vergesst|missachte|negeer|vergeet|zignoruj|pomin|abaikan|lupakan)` + sp
	foreignAll = `\b(?:tod[ao]s?|toutes?|tous|tutt[ei]|alle|alles|wszystkie|tum|butun|semua|anterior(?:es|i)?|previ[ao]s?|precedent[ei]?s?|` +
		`vorherig\pL*|bisherig\pL*|fruher\pL*|obig\pL*|vorig\pL*|voorgaande|eerdere|poprzednie|onceki|sebelumnya|ci-dessus|de arriba|acima)`
	foreignOrders = `\b(?:instruc(?:cion(?:es)?|oes|ao|tions?|ties?)|istruzion[ei]|anweisung(?:en)?|vorgaben?|regeln|indicacion(?:es)?|ordenes|consignes?|` +
		`directives?|polecen\pL*|instrukcj\pL*|talimat\pL*|instruksi|perintah)`
)

// scriptRules are for languages in other scripts. Their texts are few, so each
// is tried when its stem occurs.
var scriptRules = []struct{ stem, pattern string }{
	{"bo qua", `\bbo qua\b[^.!?]{0,40}\b(?:huong dan|chi dan|lenh|chi thi)\b[^.!?]{0,20}\b(?:truoc|tren)\b`}, // Vietnamese, without its accents
	{"игнор", `(?:про)?игнорир\pL*[^.!?]{0,60}(?:инструкци|указани|команд|правил|промпт|сообщени)\pL*`},
	{"забуд", `забуд\pL*[^.!?]{0,40}(?:предыдущ|прежн|ранее|выше|все)[^.!?]{0,40}(?:инструкци|указани|команд|правил|промпт)\pL*`},
	{"ігнор", `ігнору\pL*[^.!?]{0,60}(?:інструкці|вказівк|команд|правил)\pL*`},
	{"忽略", `忽略[^。！？\n]{0,6}(?:之前|以前|先前|前面|以上|上述|上面|此前|所有|一切|任何|全部)[^。！？\n]{0,8}(?:指令|指示|命令|提示|规则|規則|说明|說明|内容|要求)`},
	{"无视", `无视[^。！？\n]{0,6}(?:之前|以前|先前|前面|以上|上述|所有|一切|任何|全部)[^。！？\n]{0,8}(?:指令|指示|命令|提示|规则|要求)`},
	{"忘记", `忘记[^。！？\n]{0,6}(?:之前|以前|先前|前面|以上|上述|所有|一切|全部)[^。！？\n]{0,8}(?:指令|指示|命令|提示|规则|内容)`},
	{"無視", `(?:以前|前|これまで|上記|すべて|全て|今まで|先の|之前|所有)[^。！？\n]{0,10}(?:指示|命令|ルール|プロンプト|指令|規則|內容|内容)[^。！？\n]{0,10}無視`},
	{"無視", `無視[^。！？\n]{0,6}(?:之前|先前|以上|所有)[^。！？\n]{0,8}(?:指令|指示|命令|提示|規則)`},
	{"忘れ", `(?:以前|前|これまで|上記|すべて|全て|今まで)[^。！？\n]{0,10}(?:指示|命令|ルール|プロンプト)[^。！？\n]{0,10}忘れ`},
	{"무시", `(?:이전|앞|위|모든|기존)[^.!?\n]{0,16}(?:지시|명령|지침|프롬프트|규칙)[^.!?\n]{0,12}무시`},
	{"تجاهل", `تجاهل[^.!?\n]{0,24}(?:تعليمات|التعليمات|الأوامر|الاوامر|التوجيهات)[^.!?\n]{0,24}(?:السابقه|السابقة|أعلاه|اعلاه)`},
	{"نادیده", `(?:دستور|دستورات|دستورالعمل)[^.!?\n]{0,30}(?:قبلی|بالا)[^.!?\n]{0,20}نادیده`},
	{"התעלם", `התעלם[^.!?\n]{0,20}(?:הוראות|ההוראות|ההנחיות)[^.!?\n]{0,20}(?:הקודמות|לעיל)`},
	{"निर्देश", `(?:पिछले|पूर्व|सभी)[^.!?।\n]{0,24}निर्देश[^.!?।\n]{0,30}(?:अनदेखा|नजरअंदाज|नज़रअंदाज|भूल)`},
}

// poisonings are signals that make an attack when they stand close together.
var poisonings = [...][2]string{
	{"conceal", "secret"}, {"conceal", "called-first"}, {"conceal", "conversation"}, {"conceal", "hijack"}, {"conceal", "divert"},
	{"silence", "secret"}, {"silence", "divert"},
	{"hijack", "secret-exfiltration"}, {"hijack", "secret-file"}, {"called-first", "secret-file"},
	{"covert-action", "secret"}, {"covert-action", "conversation"},
	{"attention-tag", "secret"}, {"attention-tag", "conceal"}, {"attention-tag", "hijack"},
}

// nearby is how close, in bytes, the two of a poisoning must be.
const nearby = 600

// A compiled rule is a rule ready to run. Expressions are compiled when they are
// first needed: most never are, and all together take tens of milliseconds.
type compiled struct {
	rule
	re func() *regexp.Regexp
}

var compiledRules = sync.OnceValue(func() []compiled {
	out := make([]compiled, len(rules))
	for i, r := range rules {
		pattern := r.pattern
		if !r.within && !r.beside {
			pattern = `\A(?:` + pattern + `)`
		}
		out[i] = compiled{r, lazily(pattern)}
	}
	return out
})

func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// A scriptRule is one of scriptRules ready to run.
type scriptRule struct {
	stem string
	re   func() *regexp.Regexp
}

var compiledScriptRules = sync.OnceValue(func() []scriptRule {
	out := make([]scriptRule, len(scriptRules))
	for i, r := range scriptRules {
		out[i] = scriptRule{r.stem, lazily(r.pattern)}
	}
	return out
})
