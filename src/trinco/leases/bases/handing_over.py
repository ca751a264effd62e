"""A base in one access that speaks up: what somebody lets go of is given to the first in line, which is told so.

Without it a waiter is woken and asks, which takes a round trip more at every hand-over. For stores that run code and
can send something by themselves (a channel, a notification). What is told, and how long it may be believed: see
``leases.operation.Handed`` and ``LeaseClient.handed``.
"""

from trinco.leases.bases.one_access import OneAccess


class HandingOver(OneAccess):
    __slots__ = ()
    hands_over = True
