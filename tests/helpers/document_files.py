"""Write small files of every format that a memory reads."""

import zipfile
import zlib
from base64 import b85decode
from collections.abc import Sequence
from pathlib import Path

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


PICTURE = "q 200 0 0 200 72 500 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q"  # a page of a scan


def pdf(path: Path, pages: Sequence[str], title: str = "A title") -> Path:
    """Write a PDF with one line of text per page; an empty page is blank."""
    streams = [f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else "0 0 m 100 100 l S" for text in pages]
    return pdf_pages(path, streams, title)


def pdf_pages(path: Path, streams: Sequence[str], title: str = "A title") -> Path:
    """Write a PDF with one content stream per page, in Latin-1; /F1 is Helvetica, /F2 Courier."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(streams)} /Kids ["
        + " ".join(f"{5 + 2 * number} 0 R" for number in range(len(streams)))
        + "] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Title ({title}) >>",
    ]
    for number, stream in enumerate(streams):
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            "/Resources << /Font << /F1 3 0 R /F2 << /Type /Font /Subtype /Type1 /BaseFont /Courier >> >> >> "
            f"/Contents {6 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    content, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    count = len(objects) + 1
    path.write_bytes(
        content
        + f"xref\n0 {count}\n0000000000 65535 f \n{table}".encode()
        + f"trailer\n<< /Size {count} /Root 1 0 R /Info 4 0 R >>\n".encode()
        + f"startxref\n{len(content)}\n%%EOF\n".encode()
    )
    return path


def archive(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive_file:
        for name, content in files.items():
            archive_file.writestr(name, content)
    return path


def docx(path: Path, paragraphs: Sequence[str]) -> Path:
    """Write a Word document; a form feed before a paragraph starts a page."""
    body = "".join(
        "<w:p><w:r>"
        + ("<w:lastRenderedPageBreak/>" if text.startswith("\f") else "")
        + f"<w:t>{text.lstrip(chr(12))}</w:t></w:r></w:p>"
        for text in paragraphs
    )
    return archive(
        path,
        {
            "word/document.xml": f'<w:document xmlns:w="{WORD}">{body}</w:document>',
            "docProps/core.xml": '<c xmlns:dc="d"><dc:title>A report</dc:title></c>',
        },
    )


def epub(path: Path, chapters: Sequence[str]) -> Path:
    items = "".join(f'<item id="c{n}" href="c{n}.xhtml"/>' for n in range(len(chapters)))
    order = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    files = {
        "META-INF/container.xml": '<c><rootfile full-path="book/content.opf"/></c>',
        "book/content.opf": '<package xmlns:dc="d"><metadata><dc:title>A book</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{order}</spine></package>",
    }
    for number, text in enumerate(chapters):
        files[f"book/c{number}.xhtml"] = f"<html><body><p>{text}</p></body></html>"
    return archive(path, files)


def workbook(path: Path, sheets: dict[str, list[list[str | float]]]) -> Path:
    """Write a spreadsheet; an empty string is an empty cell."""
    names = "".join(f"<sheet name='{name}' sheetId='{n}' r:id='s{n}'/>" for n, name in enumerate(sheets, start=1))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    files = {
        "[Content_Types].xml": f"<Types xmlns='{package}/content-types'/>",
        "_rels/.rels": f"<Relationships xmlns='{package}/relationships'>"
        f"<Relationship Id='w' Type='{links}/officeDocument' Target='xl/workbook.xml'/></Relationships>",
        "xl/workbook.xml": f"<workbook xmlns='{main}' xmlns:r='{links}'><sheets>{names}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f"<Relationships xmlns='{package}/relationships'>"
        + "".join(
            f"<Relationship Id='s{n}' Type='{links}/worksheet' Target='worksheets/sheet{n}.xml'/>"
            for n in range(1, len(sheets) + 1)
        )
        + "</Relationships>",
    }
    for number, rows in enumerate(sheets.values(), start=1):
        data = ""
        for line, row in enumerate(rows, start=1):
            cells = ""
            for column, cell in zip("ABCDEFG", row):
                if isinstance(cell, float):
                    cells += f"<c r='{column}{line}'><v>{cell}</v></c>"
                elif cell:
                    cells += f"<c r='{column}{line}' t='inlineStr'><is><t>{cell}</t></is></c>"
            data += f"<row r='{line}'>{cells}</row>"
        files[f"xl/worksheets/sheet{number}.xml"] = (
            f"<worksheet xmlns='{main}'><sheetData>{data}</sheetData></worksheet>"
        )
    return archive(path, files)


MAIL = """\
From: Ann <ann@example.org>
To: Bob <bob@example.org>
Date: Mon, 2 Mar 2026 10:00:00 +0000
Subject: =?utf-8?q?The_caf=C3=A9?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain; charset="iso-8859-1"
Content-Transfer-Encoding: quoted-printable

The caf=E9 opens on Friday. Bring the blue folder.
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="menu.pdf"

x
--b--
"""


def unpack(text: str) -> bytes:
    return zlib.decompress(b85decode(text))


# A page that says "The account has 42 euros.", locked by `qpdf --encrypt USER owner 256`: the first
# opens without a password, as bank statements do; the second opens with "sesame".
OWNER_LOCKED = unpack(
    "c-"
    "n<jy>A><5N{~ZbrDghf*t}>AccM3AJWNEoI5L#9nSJ429hA<eav$%I`3M0Ys&_S0+}Wa5(Tt;lt{EGDAMsyAZqG}L{uPV*LU`T3wBr9xASIxZ+"
    "^d>nU$@<`Ze~R>8(8b^ZUPhj8IaA$Gv`^6vLwi%GsnUXQchSK3E%ei#0!k9jMzKQefzk=O!G&lvuL5+CIgW--Q_wh`CLQJIDJ#iW|Q1(`pyDdr"
    "+qKD86*$ok=qV(zh`KL}o#!?6S&+GSD$Ok+Kkuiy)#f31s9-"
    "D9!{}mASUwnB;<>X>|!+EWzKX4$6iwQfy4pjNB)(%k1MtZl~#<hsuA2mdLT05p~MuHl&GPtBw$b;;k7c#_<+w%h%|*V7(2q>Y$Ers^L1KoGuvA"
    "ox@zI^8}X8S4-"
    "z_Lb=;KB9>z8WZFQD@2PKK0I^D4(5$J!@AW?V;^pVBz4Oz_@w+E4zPs|{5BJty72DrlI{Dz`>kps4`NxCj8(;ta_E)dG|K;SbUw=E^_~!Dn4@Y"
    "ktJiV+Q?tB)X-"
    "21eA>&nm1Z*D%eSD$RfUtT=GT;|C0tn^Y=Z7Fn|ikmP!gk};wDaHq(>FBhi*n(T<cFxT#YrEcQGH%j*b^V}uG(2ooECy8^?L*l*-"
    "NudKct@OxA^1YRg(Ty~m&w=Z%!MmWiV^A4V3jqX1ZOb^mxA|<bIV;w-a(X(QWj{?*;DJlh(vQ@6asTrs9-"
    "shoJKEMP$?lMP!*h#l=^73WszYHBkT^w88d=gl|r@{&%t`-"
    "XcWRKCL^^bc_qBEBFc<K4N6Nbl!+lI%0zB^hFs&c&3X&!J**n4Aqy6=*OWP<xE4}n7eZ!I=cGJ_Y-"
    "24U^}Y3lhWM(_Kkkygl+p=ivI;SA3p}adRfZIewK+M?qqSCOE^@TWr{ug2PJ%=wAPDA!($tAeja53RXtJ=*=Ae9xG%^U7#9gG1xXEiIjR-"
    "*o!!-ziY`w<_j(Q^%DuQH@Ysa+B(a`KgQkmr-"
    "j6s+kY_RhxIjSM|D6u_yb`h<x=}9JMHimuD?UZLWCg=ql=NJ9Bl^1LhTlv2>r7zmFSh6*>pG>g=+v>el=8Eun`&U&vaJuz)@(JK<EN%_R{k{~O"
    "V(}>)8V)S}AFYG+F=sD>1(2)%?}4*sSjPHzzaeHmOK=GIy6IG7%<|sK%5b#a`v->*q^k"
)
USER_LOCKED = unpack(
    "c-n<jOKT)m6c#~7+PxsUxGo~7jCJ1+XabXTHyNBEA(;v2AbKC?Cf#(ZLUko%bUO=|qQr%`5D^z51l;LD1y`=zx|z-"
    "VfZ$GWA)cyqC#_l7)l}U&_dLGut8?zk)?jp#y<vJQKmGaT-"
    "#tbsslue!?~`J9(m**ISLKYfueSzk!)~$WXRr%(yF&^LUGlsG$1o+9tgg2IV$1Krj0nuRO^SOD4}lcxzVXv)54U?zrnVGcDtT|*Oo8;hvRtMBj"
    ")I|<8etQJn4`?px=5XKoNDk+(I}~RK1GvF(mZjRAsfEBlwK^QU$2hJhA>jRIZiY3fXEKnI}2<VaIZq;zd}po*vyE!U~?DJ*soP5n1$k{87Ic^H"
    "rJM~(Q(0g8)nr}9pOU55oWnqFrqt$xl&gEmg=je`gfq*Yxaqy7(1ReP~&sz8yG;WQWrF9YVZfWXV2ez>g>_?FAomRzCQhNvj1xQ?S)?tCZDWN;"
    "E(X!@2595Uw?A;#qmoUA1HX`yVsui>Z89toSgss&Erp>e(U_v^QTW9-}r@W{P6aRpM5*}_+9roVwq>2qtZ*L+E(Z|6&o-"
    ";hGrZ+DRz!R)6r>3u?4rz?TVXO)^^lsveTsb>ef-SKRj+#ECyBFJcP1!x{Djbon3J$hTseN7Lx2VzD&MOmo8jsQf!ib4i=2ITB#6u@?IyKbY|R"
    "H00%0uELrfDJ1;n8S$XZHa#`6Bgp1yKB^7|+-Ue$OB${|O*-9;?jZ9<56`MF6)O+QvV?ipc=D9X814tG@H~<}`^TxGd)KSJPWUd_I0-"
    "0r`Nvn2d$W4iNs1LAZI3P?VjWV1%BeM}MbHOdpoMkc+{kO4^koUo8As{~LtC#zvFF7+bFy^EV+y^JHIx`_<51JWf1Y<H-"
    "<|Pk7%akR@+0vGABw~X=Hx`v;!bHhHgy=M86Nn>7%d&L{;{LELgIAQoQPkKPWwis!fLW<B(r_Yx0Fgv8O63$;3W!Q(CuGb?uz+cHak{Qr<fMk&"
    "qr~>;<&WS86pCbWX=6Af-"
    "A;LFV}f3@aem#8TY1eUagP6MQ~J71izQoA`|%XpuWjAiWv&RH&wf?4r%kus8NUyBFc!B5<UwBtiXTM_DWeeDXBRX@K~M`Va&)lz{~mbI49i$QJ"
    "Zy-WA0&7J_`2y-W6ZeT%F1wa)cXhQk)#3"
)
