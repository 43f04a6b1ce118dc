// Messages of the page, from the catalogue that it embeds.

export const block = (id) => JSON.parse(document.getElementById(id).textContent);

export function speaker(messages, language) {
  const plural = new Intl.PluralRules(language);
  const number = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });
  return (key, values = {}) => {
    const message = messages[key];
    const text = typeof message === "string" ? message : message[plural.select(values.count)] ?? message.other;
    return text.replace(/\{(\w+)\}/g, (_, name) => {
      const value = values[name];
      return typeof value === "number" ? number.format(value) : value;
    });
  };
}
