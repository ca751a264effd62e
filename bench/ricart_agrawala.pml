/* The twin of trinco.protocols.permission.ricart_agrawala for Spin: the same steps, the same state.
 *
 * FIFO channel per ordered pair; acquire, release and each delivery are one step; entries left are part of the state;
 * the timestamp is kept while inside and cleared at exit; deferred is a set (bits), so its order means nothing.
 *
 *   spin -a -DROUNDS=2 ricart_agrawala.pml && cc -O2 -DSAFETY -DNOREDUCE -o pan pan.c && ./pan
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define N 3
#define CHANNEL(source, to) channel[(source) * N + (to)]
#define REQUEST 1
#define OK 2
#define IDLE 0
#define WAITING 1
#define INSIDE 2

chan channel[9] = [4] of { byte, byte };
byte left[N] = ROUNDS;
byte phase[N], clock[N], timestamp[N], awaited[N], deferred[N];
hidden byte j, stamp;
byte inside;

inline acquire(i) {
    d_step {
        phase[i] == IDLE && left[i] > 0 ->
        left[i]--; phase[i] = WAITING; clock[i]++; timestamp[i] = clock[i]; awaited[i] = 7 & ~(1 << i);
        j = 0;
        do
        :: j < N -> if :: j != i -> CHANNEL(i, j)!REQUEST, timestamp[i] :: else fi; j++
        :: else -> break
        od; j = 0
    }
}

inline release(i) {
    d_step {
        phase[i] == INSIDE ->
        phase[i] = IDLE; timestamp[i] = 0; inside--;
        j = 0;
        do
        :: j < N -> if :: deferred[i] & (1 << j) -> CHANNEL(i, j)!OK, 0 :: else fi; j++
        :: else -> break
        od; j = 0; deferred[i] = 0
    }
}

inline deliver(source, i) {
    d_step {
        nempty(CHANNEL(source, i)) ->
        if
        :: CHANNEL(source, i)?REQUEST, stamp ->
            if :: stamp > clock[i] -> clock[i] = stamp :: else fi;
            if
            :: phase[i] == INSIDE || (phase[i] == WAITING
                   && (timestamp[i] < stamp || (timestamp[i] == stamp && i < source))) -> deferred[i] = deferred[i] | (1 << source)
            :: else -> CHANNEL(i, source)!OK, 0
            fi
        :: CHANNEL(source, i)?OK, stamp ->
            awaited[i] = awaited[i] & ~(1 << source);
            if :: awaited[i] == 0 -> phase[i] = INSIDE; inside++; assert(inside <= 1) :: else fi
        fi; stamp = 0
    }
}

init {
    do
    :: acquire(0) :: acquire(1) :: acquire(2)
    :: release(0) :: release(1) :: release(2)
    :: deliver(1, 0) :: deliver(2, 0) :: deliver(0, 1) :: deliver(2, 1) :: deliver(0, 2) :: deliver(1, 2)
    od
}
