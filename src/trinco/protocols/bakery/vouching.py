"""The bakery with MACs instead of signatures, as far as that goes (``authentication=macs``).

To verify a signature takes a hundred times as long as to check a MAC. So servers *vouch* for what they say: answers to
GET to all servers and the client, votes to the client. An uncontended turn then has one signature, the client's under
the turn; that one stays, since servers must be able to show each other whom they suspect and for what.

What a liar vouches for may convince some readers and not others, and nobody can tell who lies from that. So a server
bans nobody for a justification that is right in form and that it cannot verify, it says so (BAD-JUSTIFICATION); the
client gives the turn up, and asks for signatures in all its turns from then on. All that a liar gains is time.

Nor can a server prove a ticket to others that it has accepted on somebody's word. With a certificate for each ticket
that would be the end: a liar and a client make one server accept a ticket that nobody else can verify; it may not hide
it, for it may have let somebody in with it, and may not tell it, without a certificate; and whoever needs its answer
waits for ever. So certificates, which are always signed, are made for one ticket in hundreds, and a server is believed
up to ``SLACK`` above what it shows one for. It accepts no ticket beyond that unless the justification is signed: what
it has accepted it can tell. And a liar can make tickets grow by ``SLACK`` a turn, but not without limit (F11).

A resource that trusts no client needs signed votes, and so signatures.
"""

SLACK = 1000

AUTHENTICATIONS = {"signatures": 0, "macs": SLACK}
"""The names of the two ways, and how far tickets may run ahead of their certificates in each."""
