#!/bin/sh
# check.sh BINARY...: prints, like checksec, how each program or module is hardened, and fails where one lacks a part: a program that is
# not position-independent, symbols that are bound late or stay writable, an executable stack, no stack protector, no checked calls of the
# C library, or an entry of RUNPATH that is no absolute path ($ORIGIN is one): an empty one is the current folder.
set -eu
failed=0
for binary in "$@"; do
    header=$(readelf -hW "$binary") segments=$(readelf -lW "$binary") dynamic=$(readelf -dW "$binary") symbols=$(readelf -W --dyn-syms "$binary")
    missing=
    has() { # TEXT PATTERN NAME
        printf '%s\n' "$1" | grep -Eq "$2" || missing="$missing $3"
    }
    has "$header" 'Type: +DYN' pie
    has "$segments" 'GNU_RELRO' relro
    has "$segments" 'GNU_STACK.* RW +0x' non-executable-stack
    has "$dynamic" 'BIND_NOW|Flags:.* NOW' bind-now
    has "$symbols" '__stack_chk_fail' stack-protector
    has "$symbols" '_chk(@|$)' fortify
    paths=$(printf '%s\n' "$dynamic" | sed -n 's/.*R\(UN\)\?PATH).*\[\(.*\)\]/\2/p')
    case ":$paths:" in
        ::) ;;
        *::*) missing="$missing runpath-without-empty-entry" ;;
        *) printf '%s' "$paths" | tr ':' '\n' | grep -qvE '^(/|\$ORIGIN)' && missing="$missing absolute-runpath" ;;
    esac
    echo "$(basename "$binary"): ${missing:+lacks}${missing:-hardened}${paths:+ (RUNPATH $paths)}"
    [ -z "$missing" ] || failed=1
done
exit $failed
