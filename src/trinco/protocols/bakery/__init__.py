"""The Byzantine bakery (Bessani, Fraga & Lung 2005), one idea a file: ``system`` says what it promises.

The boxes of the paper's figure 1, what a client and a server are made of, with the files in which each stands here:

    client                                  server
    +----------------------------------+    +----------------------------------------+
    | enter and exit            client |    | tickets, who is there, who waits       |
    |                                  |    |                 server, turns, tickets |
    +----------------------------------+    +----------------------------------------+
    | certification                    |    | malicious-behaviour detector           |
    |             client, certificates |    |                automaton, certificates |
    |                                  |    +----------------------------------------+
    |                                  |    | muteness detector                      |
    |                                  |    |         muteness, suspicion, freshness |
    +----------------------------------+    +----------------------------------------+
    | signatures           core.signed |    | signatures                 core.signed |
    +----------------------------------+    +----------------------------------------+
                     |                                          |
                     +------------ messages, quorums -----------+

What the paper builds on and its algorithm 2, before the accesses are grouped: ``register``, ``active_set``,
``algorithm2``. Its reliable broadcast among the servers, which nothing here rests on: ``broadcasting``.
"""
