# Completes ftax in bash:  source <(ftax completion bash)
_ftax() {
    local current="${COMP_WORDS[COMP_CWORD]}"
    COMPREPLY=($(compgen -W "$(ftax completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" | cut -f1)" -- "$current"))
    [[ $COMP_CWORD == 1 || $current == -* ]] || COMPREPLY+=($(compgen -f -- "$current"))
}
complete -o default -F _ftax ftax
