// What only the start of a program needs, given back: of one that goes on for months and has to be small.
#pragma once

namespace stoker {

// Of the program itself (its code, its constants, the list of its relocations) nothing stays in memory but what is used
// from now on: the rest comes again from its file, page by page, if it is ever wanted. Nothing is lost, since only
// pages that cannot be written are given back.
void give_back_startup_pages();

// Before the first thread is made: all of them take memory from one place, and what one gives back another has. For a
// program of a few threads, none of which is in a hurry.
void share_one_heap();

}  // namespace stoker
