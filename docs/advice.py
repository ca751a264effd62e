"""When to use each algorithm, in a few sentences: for its page. One that is not here yet has no such part."""

ADVICE = {
    "bakery": """\
Where neither servers nor clients can be trusted and nobody knows the clients beforehand: f of 3f+1 servers may lie, and
any number of clients. Two accesses to enter when nobody else asks, three otherwise, however many clients there are. It
needs servers that run it, signatures, channels in order, and clocks that run at about the same rate. If only the
storage may lie, and you want to run no server, take [quorum-lease](quorum-lease.md).""",
    "bully": """\
To choose one of a few processes that can all reach each other, where the highest id is to lead and a message is sure
to arrive within a known time. It is quick, and costs up to n² messages. If a message may be late, it makes two
leaders: then elect by a lease ([`trinco elect`](../command-line.md)), which needs no such bound.""",
    "campos-carvalho": """\
Where n is large, messages must be tiny and a few nodes enter again and again: whoever was last enters for nothing, two
that are active pay two messages each, and every message has two bits. If all ask equally often and one at a time,
Maekawa's needs fewer messages from n=21 on. Channels must keep their order, and nobody may crash.""",
    "carvalho-roucairol": """\
Where the same few processes enter again and again: whoever was last enters for nothing, and two that take turns pay
two messages each, however many others there are. When everybody asks it is Ricart and Agrawala's. Nobody may crash.""",
    "chandy-misra": """\
Where processes only conflict with their neighbours: on any graph, those who share nothing eat at the same time
(`--set graph=ring`). Messages carry one bit and states stay finite, so it can be checked without a bound on entries.
For plain mutual exclusion on a complete graph it costs what Carvalho and Roucairol's does. Nobody may crash.""",
    "coordinator": """\
The first to consider: three messages, a fair queue, hardly any code, and several resources at once. Everything hangs
on one node: if it may crash, take coordinator-failover in the lab, and in production a [store](../stores.md), which
is a coordinator that somebody else keeps alive.""",
    "coordinator-failover": """\
The coordinator's three messages where nodes may crash, all but one of them. It needs a perfect failure detector, and
those exist only where delays are bounded. Without one, take leases: they replace the detector by time.""",
    "lamport": """\
To understand logical clocks: everybody has the same queue, in an order that respects cause. Requests are served
exactly in the order of their stamps. It costs more messages than Ricart and Agrawala's, needs FIFO channels, and has
no advantage over it in use.""",
    "maekawa": """\
Where n is large, no node may be special, and every node should carry the same load: an entry asks about 2·sqrt(n)
others. The price is the most intricate of the permission algorithms here, and hand-overs that take two message times.
One crash blocks all whose quorum it is in.""",
    "naimi-trehel": """\
Few messages without a node that is special, where anybody can reach anybody: about log n on average, none for whoever
has the token, and one message time from one holder to the next. A single request may travel through all processes.
Nobody may crash, and the token must not be lost.""",
    "ordered-voting": """\
Where there is a totally ordered multicast already: then voting becomes fair, and the cost does not depend on the
number of clients. The sequencer is a coordinator under another name: if all that you have is one, let it serve the
requests by itself.""",
    "quorum-lease": """\
In production. Nobody needs to be told who has crashed, since a lease runs out by itself; f of 3f+1 stores may be
down, slow or lying; a fencing token protects the resource from those who come too late. It is what `trinco run` and
the locks for Python use over [several stores](../quorums.md), and counts on clocks that run at about the same rate.""",
    "raymond-k": """\
Where k identical units are to be shared, up to k-1 processes may crash, and nobody is told who has. Each crash takes a
unit with it: where a failure detector says who has crashed, robust-k gives it back. It says how many may enter, never
which unit is whose: robust-units does. Every entry costs up to 2(n-1) messages, whatever k. In production:
`trinco run -k`.""",
    "raymond-tree": """\
Where processes know only their neighbours, such as sites on a backbone: messages stay on the edges of the tree, and
when all ask an entry costs fewer than four of them. Who asks alone waits for two trips along the tree. Nobody may
crash: that would part the tree.""",
    "regenerating-ring": """\
A token ring for nodes that may crash, all but one of them, and with them the token. Without crashes it is the token
ring, message for message. It needs a perfect failure detector.""",
    "ricart-agrawala": """\
Where all processes are equal, few, and do not crash, and requests should be served in the order of their stamps with
a bound on overtaking. Two message times from asking alone to entering, one from leaving to the next entering.
The messages grow with n, whoever asks.""",
    "ring-election": """\
To choose a leader where processes stand in a ring and talk to their successors. The slides count 2L messages for L
processes that run; the acknowledgements, by which a process sees that its successor has crashed, are as many again.
It takes a message time or two for each process. Like bully it counts on a known longest delay.""",
    "robust-k": """\
Where k identical units are shared, all but one of the processes may crash, and messages take at most a known time, so
that a failure detector never errs (`--set detector=hi-adsd --set delta=..`). A unit whose holder has crashed is free as
soon as that is known. The tree spares whoever asks from writing to all; told directly (`--set tree=no`), an entry costs
2(n-1) messages instead of 3(n-1) and takes two message times. With k=1 there is a fencing token, with more there is
none. Where delays have no bound, take leases: `trinco run -k`.""",
    "robust-units": """\
Where it matters which of the k units is yours: "you have GPU 2". Requests are served in the order of asking, a unit
whose holder has crashed goes to the next in line, and tokens rise for any k. It needs what robust-k needs, waits for
everybody's reply, costs up to n-1 messages more, and whoever has crashed cannot come back.""",
    "suzuki-kasami": """\
Where entries should be quick and one broadcast per entry is cheap: whoever has the privilege enters for nothing,
everybody else pays n messages and two message times. The privilege carries the queue, so it grows with n. Nobody may
crash, and the privilege must not be lost.""",
    "token-ring": """\
Where everybody wants in nearly all the time: one message per entry, in turn, at most n-1 others before you. While
nobody wants in, the token still goes round, and who asks waits for it, n/2 message times on average. Nobody may
crash.""",
    "voting": """\
Where there are many clients, hardly ever two at once, and m independent coordinators that may lose their memory: with
more votes than a bare majority, several may. It is safe and no more than that: under load clients spoil each other's
majorities, and the use of the resource falls. Do not use it where somebody must get in.""",
}
