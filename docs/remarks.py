"""The flaws that are no exhibit, since nothing breaks by them, or only a text or a cost is wrong: for the page of the
exhibits. Each says what is wrong, what is done instead, and the test that shows it, if there is something to show."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Remark:
    wrong: str
    instead: str
    test: str = ""
    """file::function, below ``tests``."""


BAKERY = {
    "bakery/F3": Remark(
        "Messages are said to be O(k|U|), and section 3.3 has every request broadcast reliably among the servers.",
        "Nothing rests on the broadcast, so there is none; as a setting (`broadcast=bracha`) it costs 6n(n-1) more.",
        "lab/test_bakery_experiment.py::test_costs_as_many_messages_more_as_the_broadcast_of_3_3_takes",
    ),
    "bakery/F14": Remark(
        "A client with more answers than a quorum can justify two tickets, to different servers.",
        "No correct client suffers from it; a resource accepts q votes for one ticket only.",
        "protocols/bakery/test_certificates.py::test_a_resource_reads_the_fencing_token_from_q_votes_for_one_ticket",
    ),
    "bakery/F15": Remark(
        "A detector that errs less and less waits twice as long after each mistake, and a liar can provoke mistakes.",
        "Time is doubled up to a limit (`cap`). That it is above the real bound on delays is the operator's business.",
        "protocols/bakery/test_muteness.py::test_time_is_doubled_up_to_a_limit_only",
    ),
    "bakery/F19": Remark(
        "Votes of quick servers may run out while a slow one is still held up by a turn of a liar.",
        "Heartbeats renew votes, for `extension` at most. Without that one begins again with a later ticket: it is a "
        "matter of fairness, and was not seen to be needed for anything else.",
        "protocols/bakery/test_muteness.py::test_a_heartbeat_renews_the_vote_but_not_for_ever",
    ),
    "bakery/F20": Remark(
        "A slow client sets a low ticket by answers that have become old.",
        "Safe: the servers that answered know that it chooses. Once it was removed, its ticket is refused.",
        "protocols/bakery/test_muteness.py::test_a_removed_turn_may_go_on_talking_and_the_next_is_given_more_time",
    ),
    "bakery/F21": Remark(
        "A lying server answers with old tickets.",
        "The highest of a quorum counts, and two quorums share a correct server.",
        "protocols/bakery/test_strategies.py::test_a_lying_server_is_survived",
    ),
    "bakery/F22": Remark(
        "What if one asks for tickets while another listens?",
        "Each server decides by the order in which GET and SET came to it.",
        "protocols/bakery/test_server.py::test_whom_one_waits_for_is_fixed_when_the_ticket_is_set",
    ),
    "bakery/F23": Remark(
        "A liar sends GET, SET or EXIT to some servers only.",
        "It holds others up for twice the time to choose, or for its lease and that, each turn; identities must cost "
        "something.",
        "protocols/bakery/test_counts.py::test_a_get_to_some_servers_only_costs_no_more_than_twice_the_time_to_choose",
    ),
    "bakery/F24": Remark(
        "Servers remember every client that they ever saw.",
        "Who is gone is forgotten after a while, and answers that are as old justify nothing.",
        "lab/test_bakery_open_system.py::test_what_servers_keep_is_of_those_who_were_there_lately",
    ),
}

FORKS = {
    "forks/F8": Remark(
        "A fork and a request are counted as one message, and no code is left for it.",
        "Each direction uses three of its four codes; the fourth is the pair.",
        "protocols/test_forks_codes.py::test_two_bits_say_all_of_every_message_and_all_four_codes_are_used_each_way",
    ),
    "forks/F9": Remark(
        "R5 leaves req and dirty as they are.",
        "No error: the request token stays with the client, and R8 cleans the fork.",
        "protocols/test_campos_carvalho.py::test_a_client_without_the_rule_is_caught",
    ),
    "forks/F10": Remark("R16 and R17 allow for equal priorities.", "There are none: a list is a strict order."),
    "forks/F11": Remark(
        "req and strongreq have the same description in the table of variables.",
        "A slip of copying: the second is for the strong request.",
    ),
    "forks/F12": Remark(
        "At worst 4 sqrt n messages, 1.5 sqrt n on average.",
        "One may lose forks before it has eaten, and rarely holds half of them: see `trinco reproduce forks`.",
        "protocols/test_forks_claims.py::"
        "test_one_entry_can_cost_more_than_4_sqrt_n_because_it_loses_forks_before_it_has_eaten",
    ),
}

ROBUST_K = {
    "robust-k/F10": Remark(
        "A request waits until the one before has been acknowledged by all, though it was granted long ago.",
        "What is missing is repeated directly, and a reply may stand for the ACK (`reply_is_ack=yes`). A newer request "
        "does not supersede the older one: it might overtake it.",
        "protocols/test_spanning_tree_runs.py::test_an_answer_of_the_owner_s_can_stand_for_an_ack",
    ),
    "robust-k/F11": Remark(
        "Who does not know of a crash yet passes messages on to the dead, though the root knows.",
        "The same: repeated directly, the message arrives.",
        "protocols/test_robust_k.py::"
        "test_a_message_that_died_with_who_was_to_pass_it_on_is_there_within_a_tenth_of_a_second",
    ),
    "robust-k/F12": Remark(
        "Counting replies is right only if each is delivered exactly once (`robust-k/F3`, `robust-k/F4`).",
        "A reply says which request it answers, and who has permitted is a set.",
        "protocols/test_robust_k.py::test_no_rule_can_be_dropped",
    ),
    "robust-k/F13": Remark(
        "What a process had deferred, or was owed, stays noted when it has crashed.",
        "It is forgotten. Harmless while crashes are for ever, wrong where processes come back.",
    ),
    "robust-k/F14": Remark(
        "Is n - |suspects| - k one too few, since whoever asks counts itself?",
        "No.",
        "protocols/test_robust_k_schedules.py::test_no_random_crash_schedule_breaks_it_or_leaves_anybody_waiting",
    ),
    "robust-k/F15": Remark(
        "A unit whose holder crashed is free at different times for different observers.",
        "Safe, though their views differ. Putting the unit in order again is the application's business.",
        "protocols/test_robust_k.py::test_a_unit_whose_holder_crashes_is_free_as_soon_as_its_crash_is_known",
    ),
    "robust-k/F17": Remark(
        "Clusters are defined only where n is a power of two.",
        "Corners of the cube without a process are left out.",
        "protocols/test_clusters.py::test_corners_without_a_process_are_left_out_and_a_cluster_may_be_empty",
    ),
    "robust-k/P2": Remark(
        "The timeout of 0.08 is said to be 2 log n round trips.",
        "It is 2 log n times the delay of one message; log n + 1 are enough.",
        "protocols/test_robust_k.py::test_timeouts_are_those_of_the_paper_s_experiment_and_leave_time_for_the_answers",
    ),
    "robust-k/P3": Remark(
        "The prose passes a message on if hops > 1 after counting down.",
        "Before, as the algorithm and the figure have it.",
        "protocols/test_spanning_tree.py::"
        "test_passing_on_only_if_hops_are_above_one_after_counting_down_as_the_prose_says_does_not_reach_all",
    ),
    "robust-k/P4": Remark(
        "References 1989a and 1989b are swapped; on release, retained requests are said to be sent.",
        "Replies are sent.",
    ),
    "robust-k/P5": Remark(
        "A minimum spanning tree is said to save messages.",
        "With equal weights it is any spanning tree, and telling all directly costs less: no ACK (`tree=no`).",
        "lab/test_robust_k_experiment.py::test_every_improvement_saves_messages",
    ),
    "robust-k/P6": Remark(
        "Requests are said to be served in their order.",
        "With one unit they are; with more not always.",
        "protocols/test_robust_k.py::test_with_two_units_a_younger_request_may_be_served_first",
    ),
    "robust-k/P7": Remark(
        "The experiment's length, its first requests and its measure of efficiency are not given.",
        "`trinco reproduce robust-k` says which reading gives which figures.",
        "lab/test_robust_k_experiment.py::test_another_reading_gives_other_figures_and_the_same_reading_the_same",
    ),
    "robust-k/G1": Remark(
        "Nothing says which unit one may use.",
        "`robust-units` does.",
        "protocols/test_units.py::test_each_is_told_a_unit_of_its_own",
    ),
}

LEASE = {
    "lease/E14": Remark(
        "Algorithm 1 sleeps also after success; several variables are out of scope, an index is off by one, an entry "
        "signs itself.",
        "Read as they must be meant.",
    ),
    "lease/E18": Remark(
        "A lying store hides entries, shows old ones, or lies about the time.",
        "It spoils its own vote only; nothing that one store says is used for another.",
        "leases/test_behaviours.py::test_three_clients_survive_one_lying_store",
    ),
    "lease/E19": Remark(
        "A signature does not say for which lock and at which store: an entry of one lock, pasted into another, "
        "verifies, and nobody can tell who did it.",
        "An entry names both, and a nonce. Where it does not belong it proves nothing; it counts as held, as "
        "everything does that cannot be judged, until it runs out.",
        "leases/test_entry.py::test_an_entry_pasted_into_another_resource_proves_nothing_and_counts_as_held",
    ),
    "lease/E25": Remark(
        "Accesses are counted without releases, refusals and the reading of signatures.",
        "Signatures are in the names, so none has to be read; all accesses are counted.",
        "leases/test_composite.py::test_alone_an_entry_costs_an_acquire_and_a_release_at_every_store",
    ),
}

REMARKS = {**FORKS, **ROBUST_K, **BAKERY, **LEASE}
