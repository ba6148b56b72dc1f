// Package oauth gets, keeps and renews the tokens that remote MCP servers ask
// for, by OAuth 2.1 as the protocol of tools has it up to 2026-07-28.
//
// A [Handler] is for one server and one principal, and is what the transport of
// the SDK asks for tokens. It never asks a person: where one is needed it
// fails with an error whose Fix is "ken login SERVER", which is [Handler.Login].
//
// # What it holds to
//
//   - A token goes to the server that it was asked for, and nowhere else: it is
//     kept with the resource and the issuer it belongs to, and is not used when
//     either is another. [Handler.Client] gives the client to talk to the server
//     with, which takes no token along to another origin.
//   - Nothing of one authorization server (client, secret, refresh token) is
//     sent to another. When a server names a new one, a person logs in again.
//   - PKCE with S256 always, a fresh state for each try, and the issuer of the
//     answer compared letter by letter where the answer has one.
//   - Addresses that came from metadata are reached over https, or over http on
//     this machine when the server itself is here. Private networks are refused
//     unless the server itself is in one.
//   - Registration, where the authorization server does not know Ken: with the
//     client id of the configuration, else with a metadata document, else
//     dynamically, again at each login.
package oauth
