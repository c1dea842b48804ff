// What a person chose for this browser; one without storage forgets it with the page.

export function kept(name, storage = () => localStorage) {
  let value = null;
  return {
    get() {
      try {
        return storage().getItem(`holdfast-${name}`);
      } catch {
        return value;
      }
    },
    set(chosen) {
      value = chosen;
      try {
        if (chosen) storage().setItem(`holdfast-${name}`, chosen);
        else storage().removeItem(`holdfast-${name}`);
      } catch {
        /* kept in the page alone */
      }
    },
  };
}
