#!/bin/sh
# ccache COMPILER ARGUMENT...: what was compiled in one checkout is found again from any other, however often the tree is
# cloned. FOLDER (the tree) comes first; paths below it count as relative to it. A precompiled header holds paths and
# addresses of the compiler that wrote it, so it counts as the text that it was made from (its .sum), and not as its bytes.
set -e
export CCACHE_BASEDIR="$1" CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
shift
case " $* " in
*" -x c++-header "*) ;;
*) exec ccache "$@" ;;
esac
ccache "$@"
# The same command once more, to its text: -o FILE and -c are left out.
out=
text=
skip=
for word in "$@"; do
    if [ -n "$skip" ]; then
        [ "$skip" != -o ] || out=$word
        skip=
        continue
    fi
    case $word in
    -o | -MF | -MT | -MQ) skip=$word ;;
    -c | -M* | -fpch-preprocess) ;;
    *) text="$text '$word'" ;;
    esac
done
eval "$text -E -P" 2>/dev/null | { cat; echo "$text" | sed "s|$CCACHE_BASEDIR/||g"; } | sha256sum >"$out.sum"
