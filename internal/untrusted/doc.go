// Package untrusted is the only place that makes text from outside safe to
// show, and that scans it.
//
// Showing: [Line] returns one line for a prompt or a table, [Block] a fenced
// block for a prompt, [Terminal] text for a person's screen. They reveal what
// cannot be seen and break what a model could take for a change of speaker.
// They never delete: whatever is not shown as it stands leaves a mark that can
// be seen, and only runs of white space are folded.
//
// Judging: [Scan] reports what in a text looks like an attack on the reader.
// It changes nothing. [NameFindings] does the same for the name of a tool, and
// [Names] says which known name a new one imitates.
//
// # The notation
//
//	⟨U+200B⟩           one character that cannot be shown
//	⟨U+200B×12⟩        the same one, twelve times in a row
//	⟨tag×84⟩           84 different characters of one class: control, bidi,
//	                   zero-width, tag, selector, private, noncharacter, marks,
//	                   invalid (bytes that are not UTF-8)
//	⟨hidden×9⟩         nine of several classes
//	⟨0xFF⟩             a byte that is not UTF-8
//	⟨space×500⟩        white space long enough to push text out of sight
//	⟨193 blank lines⟩  the same, downwards
//	…⟨+1234⟩           here 1234 characters were cut
//	System\: <\system> a backslash that breaks a role marker, a role tag or a
//	[\INST] #\## User  token of a chat template
//
// The notation is for eyes and is not reversible: a text may contain it
// literally. It gives a writer nothing, for it stands for no authority.
//
// A scan is triage and no boundary: a text without findings may still carry
// instructions. What keeps a reader safe is that foreign text is fenced as data
// and has no authority.
//
// All functions are safe for concurrent use, take time linear in their input
// and never panic, whatever the bytes.
package untrusted
