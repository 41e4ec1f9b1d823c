# Makes the table of prices of the data of the crate genai-prices: a line a model,
#   HOST NAME INPUT OUTPUT CACHED CONTEXT [OTHER-NAME ...]
# in US dollars per million tokens and in tokens; `-` is not known. Of prices that depend on the size
# of a request, or on the hour, the dearest: a limit in money is not passed for that. How to renew it:
# docs/decisions/0042-prices-of-a-date.md.
#
#   jq -r --arg date YYYY-MM-DD --arg version VERSION -f renew.jq prices.json > table.txt

{ anthropic: "api.anthropic.com", openai: "api.openai.com", google: "generativelanguage.googleapis.com",
  groq: "api.groq.com", mistral: "api.mistral.ai", deepseek: "api.deepseek.com", "x-ai": "api.x.ai",
  cerebras: "api.cerebras.ai", moonshotai: "api.moonshot.ai", zai: "api.z.ai" } as $hosts

| def number($context): if type == "object"
    then [.base, (.tiers[] | select($context == null or .start < $context) | .price)] | max else . end;
  def of_day: (.constraint.start_date // "0000") <= $date;
  # What holds on that day: the newest of what began by then, or all that differs by the hour.
  def valid: if type == "array" then
      map(select(of_day)) as $begun
      | ($begun | map(.constraint.start_date // "0000") | max) as $newest
      | $begun | map(select((.constraint.start_date // "0000") == $newest or (.constraint.start_time != null))) | map(.prices)
    else [.] end;
  def dearest($key; $context): map(.[$key] // empty | number($context)) | max;
  def names: [.match | .. | objects | .equals // empty, .starts_with // empty]
    | map(select(test("^[a-z0-9][a-z0-9._/:-]*[a-z0-9]$"))) | unique;
  # In the table's order; where two models go by one name, the dearer stands first and is found.
  def rank: [.host, .id, -.output];

"# \($date) genai-prices \($version)",
( [ .[] | $hosts[.id] as $host | select($host) | .models[]
    | (.prices | valid) as $prices | .context_window as $context
    | { $host, id, $context, input: ($prices | dearest("input_mtok"; $context)),
        output: ($prices | dearest("output_mtok"; $context)), cached: ($prices | dearest("cache_read_mtok"; $context)),
        others: (names - [.id]) }
    | select(.input != null and .output != null and (.id | test("^\\S+$"))) ]
  | sort_by(rank) | .[]
  | [.host, .id, .input, .output, .cached // "-", .context // "-", .others[]] | map(tostring) | join(" ") )
