# Writes the monthly report as a PDF and mails it to the client.
RECIPIENT = "berichte@deichverband.example"
DAY_OF_MONTH = 3

def subject(month)
  "Water levels in #{month}"
end
