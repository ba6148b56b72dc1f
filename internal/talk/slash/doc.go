// Package slash turns what a person typed into a call: "/postman get URL"
// names a command and an action of it, and the words after them become the
// action's arguments. Nothing here touches a file, a process or a shell.
//
// Three things to know:
//
//   - [Commands] takes the commands out of a view's capabilities and [New]
//     makes an [Index] of them, once for a snapshot.
//   - [Index.Is] tells a command from plain text: only a message that begins
//     with a slash and the name of a known command is one. "/etc/hosts is
//     broken" is text, and so is "//postman …", whose first slash [Index.Text]
//     takes off.
//   - [Index.Parse] gives a [Route], and [Route.Call] a capability.Call that is
//     ready for the door. What cannot be read is refused with a [Fault] that
//     says where; nothing is guessed, cut or run in place of what was meant.
//
// Words are parted by blanks. 'Single' quotes keep everything, "double" quotes
// know \" and \\, and outside quotes a backslash keeps the next character.
// Dollars, stars, semicolons and the like are ordinary characters. Arguments
// are given in order, as --name value, --name=value or name=value; "--" makes
// all that follows plain words, and so does quoting one.
//
// Names and descriptions of commands come from outside: callers that show them
// pass them through package untrusted first.
package slash

// What one line may hold. Whatever is larger is refused, never cut.
const (
	maxLine       = 64 << 10
	maxText       = 1 << 20 // for a command that takes its line as one text
	maxWords      = 1024
	maxParameters = 256
	maxShown      = 3 // suggestions
)
