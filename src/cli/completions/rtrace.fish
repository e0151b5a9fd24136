# Completion of rtrace for fish. The candidates come from rtrace itself (rtrace __complete).
function __rtrace_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answers ($words[1] __complete -- $words[2..] "$current" 2> /dev/null)
    switch "$answers[1]"
        case '!files'
            __fish_complete_path $current
        case '!directories'
            __fish_complete_directories $current
        case '!command *'
            set -l first (math (string split ' ' -- $answers[1])[2] + 2)
            if test $first -gt (count $words)
                complete -C "$current"
            else
                complete -C (string join ' ' -- (string escape -- $words[$first..]) "$current")
            end
        case '*'
            printf '%s\n' $answers
    end
end
complete -c rtrace -f -a '(__rtrace_complete)'
