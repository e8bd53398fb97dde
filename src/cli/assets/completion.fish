# Completes ftax in fish:  ftax completion fish | source
complete -c ftax -a '(ftax completion words -- (commandline -opc)[2..] (commandline -ct))'
