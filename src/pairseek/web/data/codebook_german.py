"""German texts of the codebook, by the English ones."""

from __future__ import annotations

GERMAN = {
    "Name of the study in its link.": "Name der Studie in ihrem Link.",
    "Id of the session: one participation of one person.": "Kennung der Sitzung: eine Teilnahme einer Person.",
    "Value of participant or puid in the link; empty if absent.": (
        "Wert von participant oder puid im Link; leer, wenn er fehlt."
    ),
    "Value of PROLIFIC_PID in the link.": "Wert von PROLIFIC_PID im Link.",
    "Value of STUDY_ID in the link.": "Wert von STUDY_ID im Link.",
    "Value of SESSION_ID in the link.": "Wert von SESSION_ID im Link.",
    "Whether a simulated person answered.": "Ob eine simulierte Person geantwortet hat.",
    "Number of the answer in the session, from 1, without undone answers; empty for an undone one.": (
        "Nummer der Antwort in der Sitzung, ab 1, ohne zurückgenommene; bei einer zurückgenommenen leer."
    ),
    "Id of the query within the session; p3-2 is the third pair, asked a second time after an undo.": (
        "Kennung der Frage in der Sitzung; p3-2 ist das dritte Paar, nach einer Rücknahme zum zweiten Mal gefragt."
    ),
    "Item with which the two were compared, in a similarity study.": (
        "Ding, mit dem die beiden verglichen wurden, in einer Ähnlichkeitsstudie."
    ),
    "Item on the left.": "Ding auf der linken Seite.",
    "Item on the right.": "Ding auf der rechten Seite.",
    "Chosen item; empty for ties and skips.": "Gewähltes Ding; leer bei „keine Präferenz“ und übersprungenen Paaren.",
    "Rejected item; empty for ties and skips.": (
        "Nicht gewähltes Ding; leer bei „keine Präferenz“ und übersprungenen Paaren."
    ),
    "left, right, tie or skip.": "left (links), right (rechts), tie (keine Präferenz) oder skip (übersprungen).",
    "Reaction time in milliseconds, from both items being visible to the answer, measured in the browser.": (
        "Reaktionszeit in Millisekunden, vom Erscheinen beider Dinge bis zur Antwort, im Browser gemessen."
    ),
    "Time at which the server selected the pair (UTC).": "Zeitpunkt, zu dem der Server das Paar gewählt hat (UTC).",
    "Time at which the browser showed the pair (UTC, browser clock).": (
        "Zeitpunkt, zu dem der Browser das Paar gezeigt hat (UTC, Uhr des Browsers)."
    ),
    "Time at which the browser sent the answer (UTC, browser clock).": (
        "Zeitpunkt, zu dem der Browser die Antwort gesendet hat (UTC, Uhr des Browsers)."
    ),
    "Time at which the server stored the answer (UTC).": (
        "Zeitpunkt, zu dem der Server die Antwort gespeichert hat (UTC)."
    ),
    "Kind of the pair: strategy (selected by the strategy), random, repeated or attention.": (
        "Art des Paares: strategy (von der Strategie gewählt), random (zufällig), repeated (wiederholt) oder "
        "attention (Aufmerksamkeit)."
    ),
    "Strategy that selected the pair; given, for random, repeated and attention pairs.": (
        "Strategie, die das Paar gewählt hat; given bei zufälligen, wiederholten und Aufmerksamkeitspaaren."
    ),
    "Expected information of the answer in bits, computed before it was given.": (
        "Erwartete Information der Antwort in Bit, vor der Antwort berechnet."
    ),
    "Predicted probability that the left item is chosen, computed before the answer.": (
        "Vorhergesagte Wahrscheinlichkeit, dass das linke Ding gewählt wird, vor der Antwort berechnet."
    ),
    "Radius of the ball around the estimate that contains 95 % of the posterior.": (
        "Radius der Kugel um die Schätzung, die 95 % der A-posteriori-Verteilung enthält."
    ),
    "Id of the earlier query that this one repeats.": "Kennung der früheren Frage, die diese wiederholt.",
    "Correct answer of an attention pair.": "Richtige Antwort eines Aufmerksamkeitspaares.",
    "Whether this answer to an attention pair was correct; the first answer to it counts.": (
        "Ob diese Antwort auf ein Aufmerksamkeitspaar richtig war; die erste Antwort darauf zählt."
    ),
    "Whether a researcher has voided the answer or the session; void answers do not affect estimates.": (
        "Ob die Studienleitung die Antwort oder die Sitzung ungültig gemacht hat; ungültige Antworten ändern "
        "keine Schätzung."
    ),
    "Number of times that the page lost focus.": "Wie oft die Seite den Fokus verloren hat.",
    "Time in milliseconds during which the page had no focus.": (
        "Zeit in Millisekunden, in der die Seite keinen Fokus hatte."
    ),
    "Number of times that the browser sent the answer.": "Wie oft der Browser die Antwort gesendet hat.",
    "Time in milliseconds from the arrival of the request to the storage of the answer.": (
        "Zeit in Millisekunden vom Eintreffen der Anfrage bis zum Speichern der Antwort."
    ),
    "Start of the session (UTC).": "Beginn der Sitzung (UTC).",
    "End of the session (UTC); empty if it has not ended.": "Ende der Sitzung (UTC); leer, wenn sie nicht beendet ist.",
    "Reason for the end of the session.": "Grund für das Ende der Sitzung.",
    "Seed of the session, which with its parts and answers determines all results.": (
        "Startwert der Sitzung, der mit ihren Teilen und Antworten alle Ergebnisse festlegt."
    ),
    "Number of effective answers and ties, without skips.": (
        "Zahl der gültigen Antworten, mit „keine Präferenz“, ohne übersprungene Paare."
    ),
    "Number of ties.": "Zahl der Antworten „keine Präferenz“.",
    "Number of skips.": "Zahl der übersprungenen Paare.",
    "Share of repeated pairs with the same answer as before.": (
        "Anteil der wiederholten Paare mit derselben Antwort wie zuvor."
    ),
    "Share of attention pairs whose first answer was correct, also if it was undone.": (
        "Anteil der Aufmerksamkeitspaare, deren erste Antwort richtig war, auch wenn sie zurückgenommen wurde."
    ),
    "Share of left among the answers with a winner.": "Anteil von links an den Antworten mit einer Wahl.",
    "Share of answers with a reaction time below 300 ms.": "Anteil der Antworten mit einer Reaktionszeit unter 300 ms.",
    "Median of rt_ms.": "Median von rt_ms.",
    "Whether its sound or video was played before the answer: yes, no, failed (it could not be loaded) or unknown (a "
    "program did not say); empty if it has none, and for answers before this was recorded.": (
        "Ob Ton oder Video vor der Antwort abgespielt wurde: yes (ja), no (nein), failed (es ließ sich nicht laden) "
        "oder unknown (ein Programm sagte es nicht); leer, wenn es nichts abzuspielen gab, und bei früheren Antworten."
    ),
    "Quality flags: attention, inconsistent, one_sided, fast, random; unloaded (a sound or video did not load) and "
    "unheard (a choice without a record that all was played), which leave nobody out of the ranking.": (
        "Auffälligkeiten: attention (Aufmerksamkeit), inconsistent (widersprüchlich), one_sided (einseitig), "
        "fast (zu schnell), random (zufällig); unloaded (Ton oder Video ließ sich nicht laden) und unheard (eine Wahl, "
        "zu der nicht belegt ist, dass alles abgespielt wurde), die niemanden aus der Rangliste ausschließen."
    ),
    "Inferred class of the person's answers: the most probable of consistent, noisy and random.": (
        "Geschätzte Art der Antworten: die wahrscheinlichste von consistent (stimmig), noisy (verrauscht) und "
        "random (zufällig)."
    ),
    "Share of answers that agree with the person's preference at medium difficulty: posterior median.": (
        "Anteil der Antworten, die bei mittlerer Schwierigkeit der Präferenz entsprechen: Median der "
        "A-posteriori-Verteilung."
    ),
    "Noise constant of the person: posterior median.": (
        "Rauschkonstante der Person: Median der A-posteriori-Verteilung."
    ),
    "Share of answers that ignore the items: posterior median.": (
        "Anteil der Antworten, die die Dinge nicht beachten: Median der A-posteriori-Verteilung."
    ),
    "Whether the session has ended.": "Ob die Sitzung beendet ist.",
    "Id of the item.": "Kennung des Dings.",
    "Label that participants see.": "Name, den die Teilnehmenden sehen.",
    "Appeal of the item: constant added to its logit for every person.": (
        "Beliebtheit des Dings: Konstante, die für jede Person zu seinem Logit kommt."
    ),
    "Place of the item in the group ranking, from 1.": "Platz des Dings in der Rangliste der Gruppe, ab 1.",
    "Tier of the item, from 1: it cannot be told apart from the first item of its tier.": (
        "Stufe des Dings, ab 1: Es lässt sich vom ersten Ding seiner Stufe nicht unterscheiden."
    ),
    "Probability that a person drawn at random chooses the item over another item drawn at random.": (
        "Wahrscheinlichkeit, dass eine zufällige Person das Ding einem zufälligen anderen vorzieht."
    ),
    "Lower end of the 90 % interval of the share.": "Unteres Ende des 90-%-Intervalls des Anteils.",
    "Upper end of the 90 % interval of the share.": "Oberes Ende des 90-%-Intervalls des Anteils.",
    "Expected rank of the item by its mean utility over people.": (
        "Erwarteter Rang des Dings nach seinem mittleren Nutzen über die Personen."
    ),
    "Lower end of the 90 % interval of the rank.": "Unteres Ende des 90-%-Intervalls des Rangs.",
    "Upper end of the 90 % interval of the rank.": "Oberes Ende des 90-%-Intervalls des Rangs.",
    "Probability that the item is the best.": "Wahrscheinlichkeit, dass das Ding das beste ist.",
    "Probability that the item is among the best three.": (
        "Wahrscheinlichkeit, dass das Ding unter den besten drei ist."
    ),
    "Probability that the item is among the best five.": "Wahrscheinlichkeit, dass das Ding unter den besten fünf ist.",
    "Name of the picture's file, as the researcher gave it.": (
        "Name der Bilddatei, wie die Studienleitung ihn gegeben hat."
    ),
    "Colour of the card, #rrggbb.": "Farbe der Karte, #rrggbb.",
    "Picture on the card.": "Bild auf der Karte.",
    "Text alternative of the picture.": "Alternativtext des Bildes.",
    "URL of a video.": "Adresse eines Videos.",
    "URL of a sound.": "Adresse eines Klangs.",
    "Text on the card.": "Text auf der Karte.",
    "Formatted text on the card.": "Formatierter Text auf der Karte.",
    "Whether the answer was undone.": "Ob die Antwort zurückgenommen wurde.",
    "Number of answers in which the item was shown.": "Zahl der Antworten, bei denen das Ding gezeigt wurde.",
    "Number of undone answers.": "Zahl der zurückgenommenen Antworten.",
    "Lower end of the 95 % credible interval.": "Unteres Ende des 95-%-Glaubwürdigkeitsintervalls.",
    "Upper end of the 95 % credible interval.": "Oberes Ende des 95-%-Glaubwürdigkeitsintervalls.",
    "Coordinate of the estimate (posterior mean, or the procedure's own) after the answer.": (
        "Koordinate der Schätzung (A-posteriori-Mittelwert oder der des Verfahrens) nach der Antwort."
    ),
    "Coordinate of the estimate (posterior mean, or the procedure's own).": (
        "Koordinate der Schätzung (A-posteriori-Mittelwert oder der des Verfahrens)."
    ),
    "Coordinate of the item, standardized and scaled as the study says.": (
        "Koordinate des Dings, standardisiert und skaliert, wie die Studie es angibt."
    ),
    "Coordinate of a simulated person's true point.": "Koordinate des wahren Punktes einer simulierten Person.",
    "Column of the list of items, kept as it was; the search does not use it.": (
        "Spalte der Liste der Items, unverändert; die Suche verwendet sie nicht."
    ),
}
"""Texts by their English originals; a test compares them with the codebook."""
