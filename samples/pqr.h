/* Reads PQR files, in which pdb2pqr hands molecules to APBS: positions and radii in Angstrom, charges in e. */
#ifndef PQR_H
#define PQR_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct atom { double r[3], charge, radius; };
struct molecule { int atoms; struct atom *atom; };

/* A line of five numbers in the end: x y z charge radius. What stands before them varies (some files have a chain). */
static inline int pqr_line(char *line, struct atom *atom)
{
    char *word[32], *end;
    double value[5];
    int words = 0;
    for (char *w = strtok(line, " \t\r\n"); w && words < 32; w = strtok(NULL, " \t\r\n")) word[words++] = w;
    if (words < 8) return 0;
    for (int m = 0; m < 5; m++) {
        value[m] = strtod(word[words - 5 + m], &end);
        if (*end || !isfinite(value[m])) return 0;
    }
    *atom = (struct atom){{value[0], value[1], value[2]}, value[3], value[4]};
    return 1;
}

/* Ends the program with a message where the file is not a PQR file. The caller frees the atoms. */
static inline struct molecule pqr_read(const char *path)
{
    struct molecule molecule = {0, NULL};
    char line[512];
    const char *wrong = NULL;
    int number = 0;
    FILE *file = fopen(path, "r");
    if (!file) wrong = "cannot be opened";
    while (!wrong && fgets(line, sizeof line, file)) {
        number++;
        if (strncmp(line, "ATOM", 4) && strncmp(line, "HETATM", 6)) continue;
        struct atom *more = realloc(molecule.atom, (molecule.atoms + 1) * sizeof *more);
        if (more) molecule.atom = more;
        if (!more) wrong = "no memory";
        else if (!pqr_line(line, &more[molecule.atoms++])) wrong = "the line does not end in x y z charge radius";
    }
    if (!wrong && molecule.atoms == 0) wrong = "no line begins with ATOM or HETATM";
    if (file) fclose(file);
    if (wrong) {
        fprintf(stderr, "%s:%d: %s\n", path, number, wrong);
        exit(2);
    }
    return molecule;
}

static inline double pqr_distance(const struct atom *atom, const double x[3])
{
    const double d[3] = {x[0] - atom->r[0], x[1] - atom->r[1], x[2] - atom->r[2]};
    return sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
}

/* How far x is from the surface of the molecule, negative within; rounded where the spheres of its atoms meet. */
static inline double pqr_surface(const struct molecule *molecule, const double x[3])
{
    const double rounding = 0.15;
    double near = 0;
    for (int m = 0; m < molecule->atoms; m++)
        near += exp((molecule->atom[m].radius - pqr_distance(&molecule->atom[m], x)) / rounding);
    return -rounding * log(near);
}

/* The box around the centres of all atoms, with a margin. */
static inline void pqr_box(const struct molecule *molecule, double margin, double low[3], double high[3])
{
    for (int a = 0; a < 3; a++) {
        low[a] = INFINITY;
        high[a] = -INFINITY;
        for (int m = 0; m < molecule->atoms; m++) {
            low[a] = fmin(low[a], molecule->atom[m].r[a] - margin);
            high[a] = fmax(high[a], molecule->atom[m].r[a] + margin);
        }
    }
}

/* Total charge, and the middle of the charges whatever their sign. */
static inline double pqr_charge(const struct molecule *molecule, double middle[3])
{
    double charge = 0, weight = 0, sum[3] = {0, 0, 0};
    for (int m = 0; m < molecule->atoms; m++) {
        const struct atom *atom = &molecule->atom[m];
        charge += atom->charge;
        weight += fabs(atom->charge) + 1e-9;                /* a molecule without charges has a middle too */
        for (int a = 0; a < 3; a++) sum[a] += (fabs(atom->charge) + 1e-9) * atom->r[a];
    }
    for (int a = 0; a < 3; a++) middle[a] = sum[a] / weight;
    return charge;
}

#endif
