// Package connect puts Ken into the configuration of the clients that people
// use, and takes it out again.
//
// Three steps, each of them plain data in between:
//
//   - [Find] says where a client keeps its configuration, and [Prepare] reads
//     it into a [Plan]: the servers that move behind Ken, the secrets among
//     their values, what stays and why, and the changed bytes of each file.
//     Both change nothing.
//   - [Plan.Diff] shows the plan to a person, secrets hidden.
//   - [Apply] keeps the files as they were, sealed, and writes the changed
//     ones; [Undo] puts them back byte for byte, or, if they were changed
//     meanwhile, puts only the servers back.
//
// [Merge] and [ReadServers] write and read the document that the moved servers
// go to, in the form that most clients share ("mcpServers").
//
// An edit touches the entries of servers and nothing else: comments, order,
// indentation and line ends of a file stay. Each edit is read back and
// compared before it is offered; one that does not hold is an error.
//
// In a [Server] a value may have ${NAME} for a variable of the environment and
// ${secret:NAME} for a sealed secret, each with a default behind ":-". The ways
// in which clients write such references are translated to these; a text that
// would read as one and is none is carried as a secret.
package connect
