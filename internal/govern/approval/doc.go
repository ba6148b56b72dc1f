// Package approval keeps approval requests and grants: calls wait here for a
// person.
//
// A call that policy asks about becomes a [Question], which [Desk.Ask] keeps as
// a [Ticket]; nothing here waits except [Desk.Wait], for surfaces. A person
// answers with [Desk.Settle], once, whichever process was first. What was
// granted is kept as a [Grant]: [Desk.Grants] hands it to policy for the next
// decision, and [Desk.Consume] is called for the grant that the decision names,
// directly before the call runs. So the course of a call is
//
//	q.Grants, err = desk.Grants(ctx, &q)
//	d := rules.Decide(&q)
//	switch d.Effect {
//	case policy.Ask:
//		ticket, err := desk.Ask(ctx, approval.About(call, q.Surface, d))
//		… return ticket.Err() …   // made again after it was answered
//	case policy.Allow:
//		if d.Grant != "" {
//			_, err = desk.Consume(ctx, d.Grant) // refuses what was used or revoked meanwhile
//		}
//	}
//
// A state of a ticket is for showing. Authority is a grant that policy accepted
// and Consume confirmed, and nothing else.
//
// # What is kept
//
// Everything is in the store, and everything that must happen once rests on its
// preconditions. Each step is one batch, so a process that dies leaves a step
// done or not begun. The keys, where SUBJECT stands for a tenant's principal
// and a capability, and KIN for those with action and session:
//
//	approval/ticket/ID            the question, and the answer once there is one
//	approval/open/SUBJECT/CALL    the id of the open ticket about a call
//	approval/waiting/PRINCIPAL/ID there while a ticket is open, to count them
//	approval/kin/KIN/TIME-ID      settled tickets, the newest first
//	approval/quiet/KIN            the id of the ticket whose answer was "do not ask again"
//	approval/grant/SUBJECT/ID     what holds
//	approval/mark/SUBJECT         written with every answer and every end of a grant
//	approval/past/ID              how the grant of a ticket ended
//	approval/clock                the latest time that a desk has read
//
// Records of a newer version, or with words that this one does not know, are
// refused: what is not known might be what narrows.
package approval
