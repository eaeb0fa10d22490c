// What only the start of a program needs, given back: of one that goes on for months and has to be small.
#pragma once

namespace stoker {

// Of the program itself (its code, its constants, the list of its relocations) nothing stays in memory but what is used
// from now on: the rest comes again from its file, page by page, if it is ever wanted. Nothing is lost, since only
// pages that cannot be written are given back.
void give_back_startup_pages();

// Before the first thread is made: so many places there are that all of them take memory from, and what one gives back
// another has. The C library makes eight for each processor, each of which keeps what it once had.
void share_heaps(int most);

}  // namespace stoker
