# Completion of rtrace for bash. The candidates come from rtrace itself (rtrace __complete).
_rtrace() {
    local rest=${COMP_LINE:0:COMP_POINT} words=() word trimmed i
    # bash also splits words at : and =. This joins them again, because rtrace expects the words as they were typed.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        trimmed=${rest#"${rest%%[![:space:]]*}"}
        ((i == COMP_CWORD)) && word=$trimmed
        if ((i > 0)) && [[ -n $rest && $trimmed == "$rest" ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        rest=${trimmed#"$word"}
    done
    local current=${words[-1]} answers answer
    mapfile -t answers < <("${COMP_WORDS[0]}" __complete -- "${words[@]:1}" 2> /dev/null)
    COMPREPLY=()
    case ${answers[0]} in
        '!files') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
        '!directories') compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
        '!command '*)
            if declare -F _command_offset > /dev/null && ((${answers[0]#* } + 1 < COMP_CWORD)); then
                _command_offset $((${answers[0]#* } + 1))
            else
                compopt -o filenames
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
                ((${answers[0]#* } + 2 == ${#words[@]})) && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$current")
            fi
            return ;;
    esac
    # For bash, the word begins after the last : or =, so the part before it is removed from the candidates.
    local head=
    [[ $current == *[:=]* ]] && head=${current%"${current##*[:=]}"}
    for answer in "${answers[@]}"; do
        COMPREPLY+=("${answer%%$'\t'*}")
        COMPREPLY[-1]=${COMPREPLY[-1]#"$head"}
    done
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:/] ]] && compopt -o nospace
    return 0
}
complete -F _rtrace rtrace
