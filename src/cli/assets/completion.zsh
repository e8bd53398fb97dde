# Completes ftax in zsh:  source <(ftax completion zsh)
autoload -U +X bashcompinit && bashcompinit
